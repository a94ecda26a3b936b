//! Checkpoints: under the guard, with a certificate that follows from the claim, and a cursor that
//! passes only what was delivered.
//!
//! Invariants: G1, C2, C3, C4, F1, F2, Q1.

use truekeep_core::certificate::{Certificate, Claim, State};
use truekeep_core::code::Code;
use truekeep_core::failure::PortError;
use truekeep_core::follow;
use truekeep_core::ports::{
    Commit, Committed, ItemFilter, Items, Ledger, LedgerWrite, ProcedureKind, Run, RunState,
};
use truekeep_core::reconcile;
use truekeep_core::{Rank, ScopeId};

use super::Auditor;
use crate::world::{Stores, at_once};

impl Auditor {
    pub fn commit(
        &mut self,
        stores: &Stores,
        who: &str,
        commit: &Commit,
    ) -> Result<Committed, PortError> {
        let scope = &commit.scope;
        let Some(index) = self.index(scope) else { return at_once(stores.ledger.commit(commit)) };
        let lease = self.lease(stores, scope);
        let rules = self.rules(stores, scope);
        let run = open(stores, commit);
        let certificate = self.certificate(stores, index);
        let answer = at_once(stores.ledger.commit(commit))?;
        match &answer {
            Committed::Landed(version, _) => {
                // A repeat of what had landed, also before a backup: it made a version long ago.
                let known = self.landed.contains(&commit.token);
                let again = run.as_ref().map_or(known, |run| *version <= run.version);
                if again {
                    self.holds(known, "G1", || format!("{who} was told of a commit that is none"));
                    return Ok(answer);
                }
                self.landed.insert(commit.token.clone());
            }
            Committed::Lost(lost) => {
                self.tell(stores, "commit lost", format_args!("{who} {scope} {lost:?}"));
                return Ok(answer);
            }
        }
        let version = run.as_ref().map(|run| run.version);
        self.guarded("a commit", &commit.guard, lease.as_ref(), version, rules);
        let after = self.certificate(stores, index);
        if let (Some(before), Some(after)) = (&certificate, &after) {
            self.certified(stores, scope, commit, before, after);
        }
        match run.map(|run| run.procedure) {
            Some(ProcedureKind::Follow) => self.follow(stores, index, who, commit),
            Some(ProcedureKind::Reconcile) => self.reconcile(stores, index, who, commit),
            None => {}
        }
        self.certificates(stores);
        Ok(answer)
    }

    fn certified(
        &mut self,
        stores: &Stores,
        scope: &ScopeId,
        commit: &Commit,
        before: &Certificate,
        after: &Certificate,
    ) {
        let aged = Certificate { changed_at: after.changed_at, ..before.clone() };
        if aged == *after {
            return;
        }
        if (before.state, &before.moment) != (after.state, &after.moment) {
            self.moved_at = stores.time.now();
        }
        let (state, code) = (after.state.as_str(), after.code.as_ref().map_or("", Code::as_str));
        let moment = after.moment.as_ref().map(ToString::to_string).unwrap_or_default();
        self.tell(stores, "certificate", format_args!("{scope} {state} {code} at {moment}"));
        let vouches = |one: &Certificate| matches!(one.state, State::Complete | State::Partial);
        // After a fork the same name may be claimed of the other past.
        if vouches(after)
            && (before.moment != after.moment || !vouches(before))
            && let Some(index) = self.index(scope)
        {
            // What is claimed of the other past is claimed of what is there now.
            after.moment.iter().for_each(|moment| self.watches[index].pasts.claim(moment));
        }
        let claims =
            commit.writes.iter().any(|w| matches!(w, LedgerWrite::Certify(Claim::UpTo(_))));
        self.holds(claims || !vouches(after) || vouches(before), "C4", || {
            format!("{scope} became {state} without a claim")
        });
        if let (Some(old), Some(new)) = (&before.moment, &after.moment)
            && before.rules == after.rules
        {
            self.holds(new.includes(old), "C3", || format!("{scope} went from {old} to {new}"));
        }
        if vouches(after) && before.moment != after.moment {
            let unsettled = at_once(stores.ledger.list(scope, ItemFilter::Unsettled, None, 1)).ok();
            let none = unsettled.is_some_and(|items| items.is_empty());
            self.holds(none, "C2", || format!("{scope} moved to {moment} past an unsettled item"));
        }
    }

    fn follow(&mut self, stores: &Stores, index: usize, who: &str, commit: &Commit) {
        let scope = &commit.scope;
        let Ok(phase) = serde_json::from_str::<follow::Phase>(&commit.phase) else {
            return self.broke("P2", format!("{scope} stored what is no phase"));
        };
        let cursor = phase.tail().map_or(0, |tail| tail.cursor.passed.newest().get());
        let name = phase.name();
        self.tell(stores, "follow", format_args!("{who} {scope} {name} cursor {cursor}"));
        if std::mem::replace(&mut self.watches[index].cursor, cursor) != cursor {
            self.moved_at = stores.time.now();
            self.watches[index].halted = None;
        }
        let watch = &mut self.watches[index];
        if let follow::Phase::Halted(halted) = &phase {
            watch.halted = Some(halted.code.clone());
            let justified = self.watches[index].justified.contains(&halted.code);
            self.holds(justified, "F2", || {
                format!("{scope} halted with {} and nothing that happened is a reason", halted.code)
            });
        }
        let Some(tail) = phase.tail() else { return };
        let watch = &self.watches[index];
        if watch.pasts.forked().is_some() || Some(tail.rules) != self.rules(stores, scope) {
            return;
        }
        let mut skipped = None;
        let contents = stores.targets[index].sink.contents();
        for (key, (version, deleted)) in stores.source.feed() {
            let wanted = Rank { rules: tail.rules, version };
            let written = watch.ranks.get(&key).is_some_and(|rank| *rank >= wanted);
            let held = contents.live.get(&key).map(|record| record.text.as_str());
            // A deletion may be forgotten, and a row gone past capture.
            let reached = written
                || (deleted && held.is_none())
                || self.truth.is_as_new(&key, held, self.truth.now());
            if !tail.cursor.covers(version.into()) || reached || watch.damage.contains_key(&key) {
                continue;
            }
            let item = at_once(stores.ledger.item(scope, &key)).ok().flatten();
            if item.is_none() {
                skipped = Some((key, version));
                break;
            }
        }
        if let Some((key, version)) = skipped {
            self.broke("F1", format!("the cursor of {scope} passed {key} at {version}"));
        }
    }

    fn reconcile(&mut self, stores: &Stores, index: usize, who: &str, commit: &Commit) {
        let scope = &commit.scope;
        let Ok(stored) = serde_json::from_str::<reconcile::Stored>(&commit.phase) else {
            return self.broke("P2", format!("{scope} stored what is no phase"));
        };
        let report = stored.phase.report().cloned().unwrap_or_default();
        let name = stored.phase.name();
        self.tell(stores, "reconcile", format_args!("{who} {scope} {name} {report}"));
        let (now, run) = (stores.time.now(), commit.run.clone());
        let watch = &mut self.watches[index];
        let numbered = report.numbered.get();
        let ended = match &commit.state {
            RunState::Active => false,
            RunState::Succeeded => {
                watch.failed = None;
                true
            }
            RunState::Failed(code) | RunState::Stopped(code) => {
                watch.failed.replace(code.clone()).as_ref() != Some(code)
            }
        };
        let scan = match &stored.phase {
            reconcile::Phase::Scanning { scan, .. } => Some(scan.clone()),
            _ => None,
        };
        let scans = scan.is_some() && watch.scan != scan;
        watch.scan = scan;
        if std::mem::replace(&mut watch.numbered, numbered) != numbered || scans || ended {
            self.moved_at = now;
        }
        watch.reconcile = Some(run.clone());
        match &stored.phase {
            reconcile::Phase::Beginning => {
                watch.began.remove(&run);
            }
            reconcile::Phase::Auditing { after: None, .. } => {
                watch.began.insert(run, now);
            }
            reconcile::Phase::Auditing { .. } => {
                watch.began.entry(run).or_insert(now);
            }
            reconcile::Phase::Purging { .. } if !stored.terms.confirmed => {
                self.guard_let_pass(scope, &report);
            }
            reconcile::Phase::Done { .. } => {
                let began = watch.began.get(&run).copied();
                watch.reconcile = None;
                self.compared(stores, index, began.unwrap_or_default(), stored.terms.deep);
            }
            reconcile::Phase::Failed { code, .. } => {
                watch.reconcile = None;
                let justified = watch.justified.contains(code);
                self.holds(justified, "F2", || {
                    format!("a reconcile of {scope} ended with {code} for no reason")
                });
            }
            reconcile::Phase::Scanning { .. }
            | reconcile::Phase::Comparing { .. }
            | reconcile::Phase::Purging { .. }
            | reconcile::Phase::Settling { .. } => {}
        }
    }

    /// Q1, by the numbers that are promised: more than 20 that are more than 5 %, or all, or any of
    /// an empty source, ask first.
    fn guard_let_pass(&mut self, scope: &ScopeId, report: &reconcile::Report) {
        let many = report.orphans > 20 && report.orphans * 20 > report.listed;
        let all = report.orphans >= report.listed || report.live == 0;
        self.holds(!many && !all, "Q1", || {
            format!("{scope} deletes what nobody has said yes to: {report}")
        });
    }
}

fn open(stores: &Stores, commit: &Commit) -> Option<Run> {
    let kinds = [ProcedureKind::Follow, ProcedureKind::Reconcile];
    let runs = kinds
        .into_iter()
        .filter_map(|kind| at_once(stores.ledger.load(&commit.scope, kind)).ok().flatten());
    runs.into_iter().find(|run| run.id == commit.run)
}
