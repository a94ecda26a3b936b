//! The statements of one mirror: the files of `sql/` with its names put in.

use crate::spec::{Layout, MirrorSpec};

macro_rules! statements {
    ($($name:ident: $template:expr;)*) => {
        /// Every statement of a mirror.
        #[derive(Debug)]
        pub(crate) struct Statements {
            $(pub(crate) $name: String,)*
        }

        impl Statements {
            /// Puts the names of a mirror in.
            pub(crate) fn of(spec: &MirrorSpec) -> Self {
                let names = Names::of(spec);
                Self { $($name: names.put_into($template),)* }
            }

            #[cfg(test)]
            fn all(&self) -> Vec<(&'static str, &str)> {
                vec![$((stringify!($name), &*self.$name),)*]
            }
        }
    };
}

statements! {
    create_mirror: include_str!("../sql/mirror/create.sql");
    survey: include_str!("../sql/mirror/survey.sql");
    columns: include_str!("../sql/mirror/columns.sql");
    any_record: include_str!("../sql/mirror/any.sql");
    find_record: include_str!("../sql/mirror/find.sql");
    add_record: include_str!("../sql/mirror/add.sql");
    put_record: include_str!("../sql/mirror/put.sql");
    drop_record: include_str!("../sql/mirror/drop.sql");
    list_records: include_str!("../sql/mirror/list.sql");
    read_record: include_str!("../sql/mirror/read.sql");
    create_tombstones: include_str!("../sql/tombstone/create.sql");
    remove_tombstones: include_str!("../sql/tombstone/remove.sql");
    any_tombstone: include_str!("../sql/tombstone/any.sql");
    find_tombstone: include_str!("../sql/tombstone/find.sql");
    put_tombstone: include_str!("../sql/tombstone/put.sql");
    drop_tombstone: include_str!("../sql/tombstone/drop.sql");
    forget_tombstones: include_str!("../sql/tombstone/forget.sql");
    create_mark: include_str!("../sql/mark/create.sql");
    remove_mark: include_str!("../sql/mark/remove.sql");
    read_mark: include_str!("../sql/mark/read.sql");
    write_mark: include_str!("../sql/mark/write.sql");
    any_served: include_str!("../sql/served/any.sql");
    create_served: include_str!("../sql/served/create.sql");
    read_served: include_str!("../sql/served/read.sql");
    write_served: include_str!("../sql/served/write.sql");
    list_generations: include_str!("../sql/generation/list.sql");
    belongings: include_str!("../sql/generation/belongings.sql");
    computed_columns: include_str!("../sql/generation/computed.sql");
}

/// The table that remembers a mirror's deletions.
pub(crate) fn tombstones_of(table: &str) -> String {
    format!("{table}__truekeep_tombstones")
}

/// The table that holds a mirror's mark.
pub(crate) fn mark_of(table: &str) -> String {
    format!("{table}__truekeep_mark")
}

/// The table that says which generation has the plain name.
pub(crate) fn served_of(table: &str) -> String {
    format!("{table}__truekeep_served")
}

/// The table of a generation that readers do not see.
pub(crate) fn generation_of(table: &str, generation: impl std::fmt::Display) -> String {
    format!("{table}__truekeep_g{generation}")
}

/// A mirror's table and those that go with it.
pub(crate) fn companions_of(table: &str) -> [String; 3] {
    [table.to_owned(), tombstones_of(table), mark_of(table)]
}

/// Placeholders with what stands for them.
struct Names(Vec<(&'static str, String)>);

impl Names {
    fn of(spec: &MirrorSpec) -> Self {
        let columns: Vec<String> = spec.columns().into_iter().map(quoted).collect();
        let definitions: Vec<String> = match &spec.layout {
            Layout::Json { .. } => columns.clone(),
            Layout::Columns(mapped) => columns
                .iter()
                .zip(mapped)
                .map(|(name, column)| format!("{name}{}", told(&column.declared)))
                .collect(),
        };
        let assignments: Vec<String> =
            columns.iter().map(|name| format!("{name} = excluded.{name}")).collect();
        Self(vec![
            ("{mirror}", quoted(&spec.table)),
            ("{tombstones}", quoted(&tombstones_of(&spec.table))),
            ("{mark}", quoted(&mark_of(&spec.table))),
            ("{served}", quoted(&served_of(&spec.table))),
            ("{definitions}", definitions.join(",\n  ")),
            ("{places}", vec!["?"; columns.len()].join(", ")),
            ("{assignments}", assignments.join(", ")),
            ("{names}", columns.join(", ")),
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

/// A declared type as a comment, which nothing in it can end early.
fn told(declared: &str) -> String {
    let text = declared.replace("*/", "* /").replace('\0', "");
    if text.is_empty() { text } else { format!(" /* {text} */") }
}

#[cfg(test)]
mod tests;
