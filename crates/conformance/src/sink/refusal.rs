//! A record that the sink cannot take is refused alone.

use truekeep_core::ports::Outcome;

use super::SinkUnderTest;
use super::batches::{assert_contents, delete, listed, mark, rank, send, upsert};

/// Rule 105: a refused record says why; its neighbours land, the mark too, and the record that
/// was held before stays.
pub async fn refused_record_stops_no_other(subject: &mut dyn SinkUnderTest) {
    let before = vec![upsert("b", rank(1, 1), "before"), upsert("d", rank(1, 1), "before")];
    send(subject, 1, before).await;
    let Some(poison) = subject.poison().await else { return };
    let batch = vec![
        upsert("a", rank(1, 2), "fine"),
        upsert("b", rank(1, 2), &poison),
        upsert("c", rank(1, 2), &poison),
        delete("d", rank(1, 2)),
        upsert("e", rank(1, 2), "fine"),
    ];
    let outcomes = send(subject, 2, batch).await;
    for (place, outcome) in outcomes.iter().enumerate() {
        match (place, outcome) {
            (0 | 3 | 4, Outcome::Applied) => {}
            (1 | 2, Outcome::Refused(_, reason)) if !reason.is_empty() => {}
            (place, outcome) => panic!("delivery {place} ended in {outcome:?}"),
        }
    }
    assert_contents(subject, &[("a", "fine"), ("b", "before"), ("e", "fine")]).await;
    let found = listed(&*subject.sink(), 10).await;
    let found: Vec<_> = found.iter().map(|entry| (entry.key.as_str(), entry.rank)).collect();
    let [one, two] = [1, 2].map(|version| Some(rank(1, version)));
    assert_eq!(found, [("a", two), ("b", one), ("e", two)]);
    if subject.sink().capabilities().marked {
        let found = subject.sink().mark().await.expect("the mark can be read");
        assert_eq!(found, Some(mark(1, 2)));
    }
}
