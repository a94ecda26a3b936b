//! The registry of codes: what an operator reads, looks up and acts on. Codes are promised, messages are not.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};

/// A stable code: upper snake case, 1 to 64 characters.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Code(Cow<'static, str>);

impl Code {
    /// Takes text from outside: what has no code's form becomes one, so that recording a failure
    /// never fails because of its text.
    pub fn from_outside(text: &str) -> Self {
        let mut code: String = text
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' })
            .take(64)
            .collect();
        if !code.starts_with(|c: char| c.is_ascii_uppercase()) {
            code = String::from("UNEXPECTED");
        }
        Self(Cow::Owned(code))
    }

    /// The code.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Its entry in the registry, if it is one of ours.
    pub fn entry(&self) -> Option<&'static Entry> {
        REGISTRY.iter().find(|entry| entry.code == *self)
    }
}

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What a code means, where it comes from and what to do.
#[derive(Debug)]
pub struct Entry {
    /// The code.
    pub code: Code,
    /// What it says, in one sentence.
    pub meaning: &'static str,
    /// What usually causes it.
    pub cause: &'static str,
    /// What to do.
    pub remedy: &'static str,
}

macro_rules! codes {
    ($($name:ident: $meaning:literal, $cause:literal, $remedy:literal;)*) => {
        impl Code {
            $(#[doc = $meaning] pub const $name: Code = Code(Cow::Borrowed(stringify!($name)));)*
        }

        /// Every code of ours, in alphabetical order.
        pub const REGISTRY: &[Entry] = &[$(Entry {
            code: Code::$name, meaning: $meaning, cause: $cause, remedy: $remedy,
        },)*];
    };
}

codes! {
    CANCELLED:
        "An operator ended a reconcile before it had ended by itself.",
        "`truekeep cancel`; `truekeep history` says who did it.",
        "If the certificate is stale for it, run `truekeep reconcile`: what it had not come to may still differ.";
    CAPTURE_CHANGED:
        "The triggers that record changes are not the ones that were installed, so changes may have been missed.",
        "A table was rebuilt, renamed or replaced (many migration tools do so), or a trigger was dropped.",
        "Run `truekeep capture install`: it puts the triggers back and marks every row for a fresh delivery.";
    CAPTURE_FILLING:
        "Capture is still recording the rows that were there before it was installed.",
        "`truekeep capture install` was interrupted, or is at work.",
        "Run `truekeep capture install` again: it goes on where it stopped.";
    CAPTURE_MISSING:
        "The source does not record changes of this table.",
        "Capture was never installed, or was removed.",
        "Run `truekeep capture install`.";
    CONFIG_INVALID:
        "The configuration cannot be used.",
        "A key is unknown, missing or has a value it cannot have.",
        "Mend the line that the message names; `truekeep init --example` shows every key.";
    DISCARDED:
        "An operator has given up the delivery of this record.",
        "`truekeep parked discard`; the reason holds who did it and what was wrong.",
        "Nothing: the certificate stays partial until the record changes or is repaired. `truekeep parked retry` tries it after all.";
    DOCUMENT_TOO_LARGE:
        "A record's document is larger than `document_max`.",
        "The record holds a large text or blob.",
        "Leave the column out of `document`, make the record smaller, or raise `document_max`; then `truekeep parked retry`.";
    DOCUMENT_UNREADABLE:
        "A record's document cannot be made.",
        "The projection's SQL fails for this record.",
        "`truekeep check --key KEY` shows the failure; mend the SQL or the record, then `truekeep parked retry`.";
    DRIFT_FOUND:
        "A reconcile has found differences and is repairing them.",
        "Somebody else wrote the sink, or changes were made that capture did not see.",
        "Wait until the reconcile has ended; `truekeep status` shows how far it is.";
    GENERATION_MISSING:
        "The sink does not hold the generation that was asked for.",
        "It was removed, or the sink was restored or replaced.",
        "Rebuild the pipeline.";
    GENERATION_SERVED:
        "A generation that readers see cannot be removed.",
        "A swap or a rollback came first.",
        "Swap another generation in first.";
    GUARD_REFUSED:
        "Reconcile would delete more than its guard allows, or write more documents again.",
        "The source was emptied or restored, the configuration names another table, or others wrote the sink; of documents: the projection does not give the same one twice.",
        "Look at `truekeep diff`; if what it says is right, run `truekeep reconcile --confirm`.";
    INDEX_CORRUPT:
        "The search index cannot be read.",
        "A file of it is damaged or missing.",
        "Remove the index's folder and run `truekeep apply --again`: it is made anew.";
    INDEX_MISMATCH:
        "The search index is not the one that these rules write.",
        "The fields were changed since it was made, or the folder holds something else.",
        "Choose another folder, or remove this one and run `truekeep apply`.";
    INDEX_VERSION:
        "The search index has a form that this program does not know.",
        "Another version of truekeep made it.",
        "Use that version, or remove the index's folder and run `truekeep apply --again`: it is made anew.";
    KEY_REFUSED:
        "A record has a key that cannot be followed.",
        "A key column is NULL, or its type has an equality that is wider than its text.",
        "Choose another `key`, or declare a normal form; the message names the column.";
    KILLS_WORKER:
        "A record was parked because workers died each time while they delivered it.",
        "The document exhausts memory, or the sink's library crashes on it.",
        "Mend the record, then `truekeep parked retry`.";
    LEASE_HELD:
        "Another worker holds the scope.",
        "A worker is running, or died less than one lease ago.",
        "Wait until the time that is shown, or stop the other worker.";
    LEDGER_CORRUPT:
        "The ledger cannot be read.",
        "The file is damaged, or is no ledger.",
        "Restore the ledger from a backup, or move it away and start anew.";
    LEDGER_LOCKED:
        "The ledger stayed locked by another process.",
        "A program holds a write transaction open on the ledger.",
        "End that program; nothing else than truekeep should write the ledger.";
    LEDGER_UNAVAILABLE:
        "The ledger cannot be opened or written.",
        "The path does not exist, is a folder, or may not be written; the disk is full; or another file was put in its place. On a server: it is down, is a standby, or does not let this role in.",
        "Mend the path, the server or the rights, or make room; the message names it. Where the file was replaced, start the workers anew.";
    LEDGER_VERSION:
        "The ledger has a schema that this program does not know.",
        "A newer truekeep has migrated it, or an older one has not been migrated.",
        "Use the newer program, or run `truekeep migrate`.";
    LEDGER_WENT_BACK:
        "The sink or the source has seen more than the ledger remembers.",
        "The ledger was restored from a backup, or replaced by a new one.",
        "Restore the newest ledger. If there is none, run `truekeep apply --again`: everything is delivered again, and a reconcile removes what is too much.";
    LISTING_UNFINISHED:
        "A reconcile has listed its sink from the beginning again and again.",
        "The sink lists in no order, so a listing goes to its end under one worker, and each worker ended before that.",
        "Let one worker run for as long as it takes to list the sink; then `truekeep reconcile`.";
    MIRROR_MISMATCH:
        "The mirror's table is not the one that these rules write.",
        "The table existed before, or was altered.",
        "Choose another table, or drop it and run `truekeep apply`.";
    NON_CONVERGENT:
        "A record still differs after it was repaired.",
        "Something else writes the sink, or the sink changes what it is given.",
        "Compare both sides by hand; then `truekeep parked retry`.";
    NOT_WORKED_ON:
        "No worker works on this pipeline.",
        "The worker is only starting, hangs in a database or a sink, or is cut off from the ledger.",
        "Wait for one lease; if it stays, look at the worker's log and start the worker again.";
    OUTPACED:
        "Somebody else decided about this pipeline at the same time, and came first.",
        "Two operators, or two scripts, act on one pipeline.",
        "Look at `truekeep status` and `truekeep history`, and decide again.";
    PIPELINE_PAUSED:
        "An operator has paused this pipeline: nobody works on it.",
        "`truekeep pause`; `truekeep history` says who did it and why.",
        "Run `truekeep resume` when it is to go on: it goes on from where it was.";
    PIPELINE_REMOVED:
        "This pipeline is being removed, or was removed.",
        "`truekeep remove`; `truekeep history` says who did it and why.",
        "If the removal stopped on its way, run `truekeep remove` again: it goes on. Then take the pipeline out of the configuration; to have it again, run `truekeep apply`.";
    PIPELINE_RESUMED:
        "An operator has resumed this pipeline.",
        "`truekeep resume`.",
        "Nothing: a worker goes on from where it was.";
    PIPELINE_UNKNOWN:
        "The ledger does not know this pipeline.",
        "Its rules were never put in force in this ledger, or the name is misspelt.",
        "Run `truekeep apply`, or check the name.";
    REBUILT:
        "A rebuild has delivered everything again under the present rules, and found nothing different after it.",
        "Rules were announced: `truekeep apply`, or `truekeep rebuild`.",
        "Nothing: the text says what it delivered.";
    RECONCILED:
        "Source and sink were held against each other.",
        "`truekeep reconcile` or `reconcile_every`.",
        "Nothing: the report says what was found.";
    RELATION_MISSING:
        "The source has no such table, or the table lacks a column that the rules name.",
        "It was renamed or dropped, or the name is misspelt.",
        "Mend the configuration and run `truekeep apply`.";
    RELATION_REFUSED:
        "The table cannot be followed.",
        "It is a view or a virtual table, or has no usable key.",
        "Follow the tables behind the view, or declare a `key`.";
    REQUESTED:
        "An operator wants this record delivered again.",
        "`truekeep parked retry` named it.",
        "Nothing: it is delivered next.";
    RULES_CHANGED:
        "The rules are not the ones that were delivered: this configuration is not in force, or what it changes is still under way.",
        "The configuration was edited, this worker has an old one, or new rules were announced a moment ago.",
        "If `truekeep apply` was not run since the edit, run it; then restart the workers with this configuration, and wait.";
    RULES_UNSETTLED:
        "The rules were changed again and again while a rebuild was under way, so it never came to its end.",
        "Several deployments with different configurations announce their rules in turn.",
        "Find out who calls `truekeep apply` (`truekeep history`), agree on one configuration, and apply it.";
    SINK_AHEAD:
        "The sink holds a newer version of a record than the source knows.",
        "The source was restored from a backup, or the sink belongs to another source.",
        "`truekeep diff` names the keys. Find out which side is right; if the source is, run `truekeep apply --again`.";
    SINK_DISORDERED:
        "The sink does not list its keys as it says it does.",
        "It orders them by a collation, or as UTF-16, or its listing neither ends nor goes on.",
        "Give its key the order of UTF-8's bytes (a binary collation). If it has that, report it with the message.";
    SINK_FENCED:
        "The sink has seen a later holder of this scope than the ledger.",
        "Another worker took over, or the ledger went back.",
        "If no other worker runs, see `truekeep explain LEDGER_WENT_BACK`.";
    SINK_INHERITED:
        "The sink was written by a pipeline that was removed, and is another one's now.",
        "A pipeline was removed or renamed, and this one has its target.",
        "Nothing, while it is being delivered: a reconcile then removes what is left over, under its guard. If the pipeline is halted for it, run `truekeep apply --again`: its rules go on above the old ones.";
    SINK_LOCKED:
        "Another process writes the sink.",
        "A search index has one writer at a time; a worker that was stopped or is still ending keeps it.",
        "End the other process; truekeep tries again by itself.";
    SINK_OWNED:
        "The sink belongs to another pipeline or ledger.",
        "Two configurations name the same target, or the ledger was replaced.",
        "Give each pipeline a target of its own. If nobody writes it any more, remove the pipeline that did (`truekeep remove`), or drop the table with its truekeep tables.";
    SINK_REFUSED:
        "The sink refused a record.",
        "The document does not fit the sink's schema.",
        "Mend the record or the schema, then `truekeep parked retry`.";
    SINK_UNAVAILABLE:
        "The sink cannot be reached or written.",
        "It is down, full, locked or read-only.",
        "Mend the sink; truekeep tries again by itself.";
    SINK_UNVERIFIABLE:
        "The sink cannot say whether it holds a document.",
        "`--deep` was asked of a kind of sink that does not give back what it was given.",
        "Leave `--deep` out. To be sure of every document, run `truekeep apply --again`: everything is delivered again.";
    SINK_WENT_BACK:
        "The sink has lost what it had confirmed.",
        "It was restored from a backup, emptied or replaced.",
        "Nothing: a reconcile repairs it by itself, and the certificate is stale until it has.";
    SOURCE_CORRUPT:
        "The source cannot be read.",
        "The file is damaged, encrypted, or no database.",
        "Check it with its own tools (`PRAGMA integrity_check`).";
    SOURCE_LOCKED:
        "The source stayed locked by another program.",
        "A write transaction stays open for long.",
        "Shorten that transaction; truekeep tries again by itself.";
    SOURCE_READ_FAILED:
        "The source could not be read.",
        "A query of the rules fails, or the storage does.",
        "The message holds the database's own words.";
    SOURCE_REPAIRED:
        "The source had gone back, and was numbered anew.",
        "It was restored from a backup, or lost its last writes in a crash; `source_went_back` says \"repair\".",
        "Nothing: everything is delivered again, and a reconcile removes what only the lost state had; many such records need `truekeep reconcile --confirm`.";
    SOURCE_UNAVAILABLE:
        "The source cannot be opened or written.",
        "The path does not exist, is a folder, or may not be read or written; or the disk is full.",
        "Mend the path or its rights, or make room; the message names it.";
    SOURCE_WENT_BACK:
        "The source is older than what was already delivered from it.",
        "It was restored from a backup, is another database, or its capture was removed and installed anew.",
        "Find out which source is the right one. If it is this one, run `truekeep apply --again`: everything is delivered again, and a reconcile removes what is too much.";
    SPILL_FAILED:
        "What does not fit in memory could not be put aside on disk.",
        "The folder for temporary files is full, not there or not writable.",
        "Make room there, or name another folder: `spill` under `[worker]` in the configuration.";
    TOMBSTONES_PRUNED:
        "Deletions that this pipeline has not seen are no longer recorded in the source.",
        "The ledger was restored from a backup that is older than the last clean-up.",
        "Run `truekeep apply --again`: everything is delivered again, and a reconcile removes what is too much.";
    UNEXPECTED:
        "Something happened that should not have.",
        "A bug of ours, most likely.",
        "Report it with the message.";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_a_codes_form_and_stands_in_order() {
        for entry in REGISTRY {
            assert_eq!(Code::from_outside(entry.code.as_str()), entry.code);
            for text in [entry.meaning, entry.cause, entry.remedy] {
                assert!(text.ends_with('.'), "{}: {text}", entry.code);
            }
        }
        assert!(REGISTRY.is_sorted_by(|a, b| a.code < b.code));
    }

    #[test]
    fn any_text_becomes_a_code() {
        assert_eq!(Code::from_outside("http 413").as_str(), "HTTP_413");
        assert_eq!(Code::from_outside("").as_str(), "UNEXPECTED");
        assert_eq!(Code::from_outside("ü").as_str(), "UNEXPECTED");
        assert_eq!(Code::from_outside(&"a".repeat(200)).as_str().len(), 64);
    }
}
