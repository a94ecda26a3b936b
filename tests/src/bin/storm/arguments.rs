//! The command line.

use crate::Fault;
use crate::scenario::{self, Scenario};
use crate::sink::{self, Sink};

/// What is asked for.
#[derive(Debug, PartialEq)]
pub struct Arguments {
    /// Minutes for all scenarios together; each has one round at least.
    pub minutes: f64,
    /// The root of all draws.
    pub seed: u64,
    only: Vec<String>,
    sinks: Vec<String>,
}

impl Arguments {
    /// Reads the words.
    pub fn parse(words: &[String]) -> Result<Self, Fault> {
        let mut arguments = Self { minutes: 10.0, seed: 1, only: Vec::new(), sinks: Vec::new() };
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or_else(|| format!("{word} takes a value"));
            match word.as_str() {
                "--minutes" => arguments.minutes = value()?.parse()?,
                "--seed" => arguments.seed = value()?.parse()?,
                "--only" => arguments.only.push(value()?.clone()),
                "--sink" => arguments.sinks.push(value()?.clone()),
                other => {
                    return Err(format!(
                        "unknown word {other}; known: --minutes, --seed, --only, --sink"
                    )
                    .into());
                }
            }
        }
        if !arguments.minutes.is_finite() || arguments.minutes < 0.0 {
            return Err("--minutes takes a number that is not negative".into());
        }
        known(&arguments.only, scenario::ALL.iter().map(|scenario| scenario.name))?;
        known(&arguments.sinks, sink::all().iter().map(|sink| sink.name()))?;
        Ok(arguments)
    }

    /// The scenarios. One that cannot be done here is left out aloud, unless it was asked for.
    #[expect(clippy::print_stdout, reason = "what is left out is said")]
    pub fn scenarios(&self) -> Result<Vec<&'static Scenario>, Fault> {
        let mut chosen = Vec::new();
        for scenario in scenario::ALL {
            let named = self.only.iter().any(|name| name == scenario.name);
            if !named && !self.only.is_empty() {
                continue;
            }
            match (scenario.missing)() {
                None => chosen.push(scenario),
                Some(why) if named => return Err(format!("{}: {why}", scenario.name).into()),
                Some(why) => println!("LEFT OUT {}: {why}", scenario.name),
            }
        }
        Ok(chosen)
    }

    /// The sink of a round: one after another.
    pub fn sink(&self, round: u64) -> Result<Box<dyn Sink>, Fault> {
        let mut sinks = sink::all();
        sinks.retain(|sink| {
            self.sinks.is_empty() || self.sinks.iter().any(|name| name == sink.name())
        });
        let at = usize::try_from(round % sinks.len() as u64)?;
        Ok(sinks.swap_remove(at))
    }
}

fn known<'n>(asked: &[String], names: impl Iterator<Item = &'n str>) -> Result<(), Fault> {
    let names: Vec<_> = names.collect();
    match asked.iter().find(|name| !names.contains(&name.as_str())) {
        Some(other) => Err(format!("there is no {other:?}; known: {}", names.join(", ")).into()),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Arguments, Fault> {
        let words: Vec<_> = text.split_whitespace().map(str::to_owned).collect();
        Arguments::parse(&words)
    }

    #[test]
    fn everything_can_be_said() {
        let parsed = parse("--minutes 0.5 --seed 18446744073709551615 --only power --sink sqlite");
        let parsed = parsed.expect("parsed");
        assert_eq!((parsed.minutes, parsed.seed), (0.5, u64::MAX));
        let names: Vec<_> = parsed.scenarios().expect("known").iter().map(|one| one.name).collect();
        assert_eq!(names, ["power"]);
        assert_eq!(parsed.sink(3).expect("one").name(), "sqlite");
    }

    #[test]
    fn what_is_not_known_is_refused() {
        for text in
            ["--minutes", "--minutes x", "--minutes -1", "--only wind", "--sink tape", "power"]
        {
            assert!(parse(text).is_err(), "{text}");
        }
        assert!(parse("").is_ok());
    }
}
