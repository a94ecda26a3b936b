//! Snapshots with holes, and what they cover.

use super::*;

fn at(newest: u64) -> Moment {
    Moment::at(Version::new(newest))
}

fn stamps(moment: &Moment) -> Vec<u64> {
    (0..20).filter(|id| moment.covers(Stamp::new(*id))).collect()
}

#[test]
fn a_snapshot_covers_what_was_committed_below_its_end() {
    assert_eq!(stamps(&at(3)), [0, 1, 2, 3]);
    assert_eq!(stamps(&Moment::BEGINNING), [] as [u64; 0]);
    assert_eq!(at(0), Moment::BEGINNING);
    assert_eq!(stamps(&Moment::snapshot(6, [4, 2, 2, 9])), [0, 1, 3, 5]);
}

#[test]
fn a_snapshot_includes_another_if_it_covers_all_that_it_covers() {
    let some: Vec<Moment> = [(0, vec![]), (5, vec![]), (6, vec![4]), (6, vec![2, 4]), (7, vec![6])]
        .into_iter()
        .chain([(8, vec![4]), (8, vec![5, 7]), (9, vec![])])
        .map(|(next, running)| Moment::snapshot(next, running))
        .collect();
    for a in &some {
        for b in &some {
            let covered = (0..20).map(Stamp::new).all(|id| !b.covers(id) || a.covers(id));
            // A number that neither covers may still have been handed out between the two.
            if a.includes(b) {
                assert!(covered, "{a} includes {b}");
            } else if a.next() >= b.next() {
                assert!(!covered, "{a} does not include {b}");
            }
        }
    }
}

#[test]
fn its_text_is_read_back() {
    for moment in [at(0), at(41), Moment::snapshot(731, [728, 729]), at(u64::MAX - 1)] {
        assert_eq!(moment.to_string().parse(), Ok(moment.clone()));
    }
    assert_eq!(Moment::snapshot(731, [729, 728]).to_string(), "728:731:728,729");
    assert_eq!("728:728:".parse(), Ok(at(727)), "as Postgres writes it when nothing runs");
    for text in ["", "x", "-1", "5:3:", "1:5:7", "1:5", "1:5:x"] {
        assert!(text.parse::<Moment>().is_err(), "{text}");
    }
}
