//! The statements of one mirror: the files of `sql/` with its names put in.

use sha2::{Digest, Sha256};

use crate::spec::{MirrorSpec, NAME_BYTES_MAX};

macro_rules! statements {
    ($($name:ident: $template:expr;)*) => {
        /// Every statement of a mirror.
        #[derive(Debug)]
        pub(crate) struct Statements {
            $(pub(crate) $name: String,)*
        }

        impl Statements {
            /// Puts the names of a mirror in; `base` is the table whose companions it has.
            pub(crate) fn of(spec: &MirrorSpec, base: &str) -> Self {
                let names = Names::of(spec, base);
                Self { $($name: names.put_into($template),)* }
            }

            #[cfg(test)]
            pub(crate) fn all(&self) -> Vec<(&'static str, &str)> {
                vec![$((stringify!($name), &*self.$name),)*]
            }
        }
    };
}

statements! {
    create_mirror: include_str!("../sql/mirror/create.sql");
    any_record: include_str!("../sql/mirror/any.sql");
    look: include_str!("../sql/mirror/look.sql");
    copy_records: include_str!("../sql/mirror/copy.sql");
    put_records: include_str!("../sql/mirror/put.sql");
    drop_records: include_str!("../sql/mirror/drop.sql");
    list_records: include_str!("../sql/mirror/list.sql");
    read_records: include_str!("../sql/mirror/read.sql");
    create_tombstones: include_str!("../sql/tombstone/create.sql");
    put_tombstones: include_str!("../sql/tombstone/put.sql");
    drop_tombstones: include_str!("../sql/tombstone/drop.sql");
    forget_tombstones: include_str!("../sql/tombstone/forget.sql");
    create_marks: include_str!("../sql/mark/create.sql");
    add_mark: include_str!("../sql/mark/add.sql");
    read_mark: include_str!("../sql/mark/read.sql");
    hold_mark: include_str!("../sql/mark/hold.sql");
    write_mark: include_str!("../sql/mark/write.sql");
    list_generations: include_str!("../sql/generation/list.sql");
    hold_generations: include_str!("../sql/generation/hold.sql");
    serve_generation: include_str!("../sql/generation/serve.sql");
    forget_generation: include_str!("../sql/generation/forget.sql");
}

/// Looks for relations by their names.
pub(crate) const SURVEY: &str = include_str!("../sql/relation/survey.sql");
/// The columns of a relation.
pub(crate) const COLUMNS: &str = include_str!("../sql/relation/columns.sql");
/// What others made on a table, with the statements that take it off and make it.
pub(crate) const BELONGINGS: &str = include_str!("../sql/generation/belongings.sql");
/// What depends on a table and cannot be carried over.
pub(crate) const OBSTACLES: &str = include_str!("../sql/generation/obstacles.sql");
/// Generated columns.
pub(crate) const COMPUTED: &str = include_str!("../sql/generation/computed.sql");
/// Lets one process at a time make what is not there.
pub(crate) const ALONE: &str = include_str!("../sql/relation/alone.sql");

/// The table that remembers a mirror's deletions.
pub(crate) fn tombstones_of(table: &str) -> String {
    companion(table, "tombstones")
}

/// The table that holds a mirror's marks.
pub(crate) fn marks_of(table: &str) -> String {
    companion(table, "marks")
}

/// The table of a generation that readers do not see.
pub(crate) fn generation_of(table: &str, generation: impl std::fmt::Display) -> String {
    companion(table, &format!("g{generation}"))
}

/// Postgres cuts a long name off, and two names would be one: such a one is cut here, and told apart
/// from others by its hash.
fn companion(table: &str, what: &str) -> String {
    let whole = format!("{table}__truekeep_{what}");
    if whole.len() <= NAME_BYTES_MAX {
        return whole;
    }
    let hash: String =
        Sha256::digest(table).iter().take(6).map(|byte| format!("{byte:02x}")).collect();
    let end = format!("_{hash}__truekeep_{what}");
    let mut length = NAME_BYTES_MAX.saturating_sub(end.len());
    while !table.is_char_boundary(length) {
        length -= 1;
    }
    format!("{}{end}", &table[..length])
}

/// Placeholders with what stands for them.
struct Names(Vec<(&'static str, String)>);

impl Names {
    fn of(spec: &MirrorSpec, base: &str) -> Self {
        let columns = spec.columns();
        let quoted_names: Vec<String> = columns.iter().map(|(name, _)| quoted(name)).collect();
        let each = |of: &dyn Fn(usize, &str) -> String| {
            let all = quoted_names.iter().enumerate().map(|(place, name)| of(place, name));
            all.collect::<Vec<_>>()
        };
        let kind = |place: usize| columns[place].1;
        let in_schema = |table: &str| format!("{}.{}", quoted(&spec.schema), quoted(table));
        Self(vec![
            ("{mirror}", in_schema(&spec.table)),
            ("{tombstones}", in_schema(&tombstones_of(base))),
            ("{marks}", in_schema(&marks_of(base))),
            (
                "{definitions}",
                each(&|place, name| format!("{name} {}", kind(place).name())).join(",\n  "),
            ),
            ("{arrays}", each(&|place, _| format!("${}::text[]", place + 4)).join(", ")),
            ("{aliases}", each(&|place, _| format!("c{place}")).join(", ")),
            (
                "{values}",
                each(&|place, _| format!("sent.c{place}::{}", kind(place).name())).join(", "),
            ),
            ("{assignments}", each(&|_, name| format!("{name} = excluded.{name}")).join(", ")),
            ("{reads}", each(&|place, name| kind(place).read(&format!("m.{name}"))).join(", ")),
            ("{names}", quoted_names.join(", ")),
        ])
    }

    /// One pass from left to right: a name that looks like a placeholder stays a name.
    fn put_into(&self, template: &str) -> String {
        let mut text = String::new();
        let mut rest = template;
        while let Some(start) = rest.find('{') {
            text.push_str(&rest[..start]);
            rest = &rest[start..];
            let known = self.0.iter().find(|(placeholder, _)| rest.starts_with(placeholder));
            let (length, value) = known.map_or((1, "{"), |(name, value)| (name.len(), value));
            text.push_str(value);
            rest = &rest[length..];
        }
        text + rest
    }
}

/// An identifier that may hold anything but NUL.
pub(crate) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

#[cfg(test)]
mod tests;
