//! The law: a certificate that says complete at a moment is true, and at rest it says so of now.
//!
//! Invariant: C1.

use truekeep_core::certificate::{Certificate, State};
use truekeep_core::code::Code;
use truekeep_core::ports::Items;
use truekeep_core::{Key, Moment};

use super::{Auditor, Broken};
use crate::truth;
use crate::world::{Stores, at_once};

/// What excuses a certificate that is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Excused {
    /// Whatever was done to the sink past its port and cannot have been noticed yet.
    Unnoticed,
    /// What only a comparison can notice.
    Silent,
    /// Nothing.
    Nothing,
}

impl Auditor {
    /// C1.
    ///
    /// # Errors
    /// How the certificate lies.
    pub fn law(&self, stores: &Stores, index: usize, excused: Excused) -> Result<(), Broken> {
        let Some(certificate) = self.certificate(stores, index) else { return Ok(()) };
        if !matches!(certificate.state, State::Complete | State::Partial) {
            return Ok(());
        }
        let scope = &self.scopes[index];
        let lie = |how: String| Err(Broken { promise: "C1", how });
        let Some(moment) = &certificate.moment else {
            return lie(format!("{scope} is {} at no moment", certificate.state.as_str()));
        };
        let watch = &self.watches[index];
        let Some(then) = watch.pasts.when(moment) else {
            return lie(format!("{scope} names the moment {moment}, which never was"));
        };
        if Some(certificate.rules) != self.rules(stores, scope) {
            return lie(format!("{scope} is certified under rules {}", certificate.rules));
        }
        let made_by = watch.rules.get(&certificate.rules);
        let contents = stores.targets[index].sink.contents();
        let ours = contents.live.keys();
        for key in self.truth.keys().chain(ours) {
            let excuse = watch.damage.get(key).is_some_and(|damage| match excused {
                Excused::Unnoticed => true,
                Excused::Silent => !damage.by_restore,
                Excused::Nothing => false,
            });
            if excuse || self.is_parked(stores, index, &certificate, key) {
                continue;
            }
            let record = contents.live.get(key);
            if !self.truth.is_as_new(key, record.map(|record| record.text.as_str()), then) {
                return lie(self.told(index, key, moment, then, record.map(|r| r.text.as_str())));
            }
            let theirs = record.is_some_and(|record| Some(&record.made_by) != made_by);
            // The feed may have forgotten it: then only a comparison delivers it under these rules.
            let told = watch.pasts.forked().is_none() && !self.truth.is_missed(key);
            if theirs && told {
                return lie(format!("{scope} holds {key} as other rules made it"));
            }
        }
        Ok(())
    }

    fn told(
        &self,
        index: usize,
        key: &Key,
        moment: &Moment,
        then: truth::Time,
        held: Option<&str>,
    ) -> String {
        let scope = &self.scopes[index];
        let past = self.truth.told(key, then);
        format!("{scope} at {moment} holds {key} as {held:?}, which {past}")
    }

    /// A record that is an item, parked or tried again since, is what makes a certificate partial.
    fn is_parked(&self, stores: &Stores, index: usize, said: &Certificate, key: &Key) -> bool {
        let item = || at_once(stores.ledger.item(&self.scopes[index], key)).ok().flatten();
        said.state == State::Partial && item().is_some()
    }

    /// What a pipeline says once nothing moves any more: that all is delivered as of now, or else
    /// why not, with good reason.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn rests(&self, stores: &Stores, index: usize, excused: Excused) -> Result<(), Broken> {
        self.law(stores, index, excused)?;
        let scope = &self.scopes[index];
        let at_rest = |how: String| Err(Broken { promise: "at rest", how });
        let Some(certificate) = self.certificate(stores, index) else {
            return at_rest(format!("{scope} has no certificate"));
        };
        let justified = |code: &Option<Code>| {
            code.as_ref().is_some_and(|c| self.watches[index].justified.contains(c))
        };
        let state = certificate.state;
        match state {
            State::Complete | State::Partial => {
                let pasts = &self.watches[index].pasts;
                let moment = certificate.moment.as_ref();
                let then = moment.and_then(|moment| pasts.when(moment));
                if then.is_none_or(|then| !self.truth.is_newest(then)) {
                    return at_rest(format!("{scope} is {} as of the past", state.as_str()));
                }
            }
            State::Stale | State::Running if justified(&certificate.code) => {}
            // It looks again now and then whether the cause is gone.
            State::Stale | State::Running if justified(&self.watches[index].halted) => {}
            State::Stale | State::Running | State::Never | State::Failed => {
                let code = certificate.code.as_ref().map_or("no code", Code::as_str);
                return at_rest(format!("{scope} is {} with {code}", state.as_str()));
            }
        }
        Ok(())
    }

    /// What a pipeline says in the end, after every remedy: complete as of now, and both sides equal.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn is_whole(&self, stores: &Stores, index: usize) -> Result<(), Broken> {
        self.rests(stores, index, Excused::Nothing)?;
        let scope = &self.scopes[index];
        let state = self.certificate(stores, index).map_or(State::Never, |c| c.state);
        let in_the_end = |how: String| Err(Broken { promise: "in the end", how });
        if state != State::Complete {
            return in_the_end(format!("{scope} is {}", state.as_str()));
        }
        let (rows, contents) = (stores.source.rows(), stores.targets[index].sink.contents());
        for key in rows.keys().chain(contents.live.keys()) {
            let held = contents.live.get(key).map(|record| &record.text);
            if rows.get(key) != held {
                return in_the_end(format!("{scope} holds {key} as {held:?}"));
            }
        }
        Ok(())
    }
}
