//! The rules of the lease keeper, in virtual time.

#![expect(clippy::disallowed_methods, reason = "the runtime's paused clock is the holder's")]

use std::collections::VecDeque;

use async_trait::async_trait;
use tokio::time::{Instant, sleep_until, timeout};
use truekeep_core::code::Code;
use truekeep_core::failure::{FailureClass, PortError};
use truekeep_core::lease::Lease;
use truekeep_core::ports::Acquired;
use truekeep_core::{ScopeId, Timestamp};

use super::*;

const TTL: Duration = Duration::from_secs(30);
const TURN_MAX: Duration = Duration::from_secs(60);

#[derive(Debug)]
struct Paused(Instant);

#[async_trait]
impl Clock for Paused {
    fn monotonic(&self) -> Duration {
        self.0.elapsed()
    }

    async fn sleep(&self, length: Duration) {
        sleep_until(Instant::now() + length).await;
    }
}

#[derive(Debug)]
enum Answer {
    Lost(&'static str),
    Late(Duration),
    Fails,
    Hangs,
}

/// Answers renewals as it was told, and well after that.
#[derive(Debug)]
struct Scripted {
    began: Instant,
    answers: Mutex<VecDeque<Answer>>,
    asked: Mutex<Vec<(u64, Vec<String>)>>,
}

#[async_trait]
impl Leases for Scripted {
    async fn acquire(
        &self,
        _: &ScopeId,
        _: &HolderId,
        _: &LeaseToken,
        _: Duration,
    ) -> Result<Acquired, PortError> {
        unreachable!("a keeper takes no lease")
    }

    async fn renew(
        &self,
        _: &HolderId,
        tokens: &[LeaseToken],
        ttl: Duration,
    ) -> Result<Vec<LeaseToken>, PortError> {
        assert_eq!(ttl, TTL);
        let names = tokens.iter().map(|token| token.as_str().to_owned()).collect();
        self.asked.lock().expect("sound").push((self.began.elapsed().as_secs(), names));
        let answer = self.answers.lock().expect("sound").pop_front();
        match answer {
            None => Ok(Vec::new()),
            Some(Answer::Lost(name)) => Ok(vec![token(name)]),
            Some(Answer::Late(by)) => {
                Paused(self.began).sleep(by).await;
                Ok(Vec::new())
            }
            Some(Answer::Fails) => {
                Err(PortError::new("renew leases", FailureClass::Unknown, Code::LEDGER_UNAVAILABLE))
            }
            Some(Answer::Hangs) => std::future::pending().await,
        }
    }

    async fn release(&self, _: &ScopeId, _: &LeaseToken) -> Result<bool, PortError> {
        unreachable!("a keeper gives no lease back")
    }

    async fn holder(&self, _: &ScopeId) -> Result<(Option<Lease>, Timestamp), PortError> {
        unreachable!("a keeper asks for no holder")
    }
}

fn token(name: &str) -> LeaseToken {
    LeaseToken::parse(name).expect("valid")
}

/// A keeper at work, and what it asks.
struct Kept {
    keeper: Arc<Keeper>,
    leases: Arc<Scripted>,
}

impl Kept {
    fn at_work(answers: impl IntoIterator<Item = Answer>) -> Self {
        let began = Instant::now();
        let answers = Mutex::new(answers.into_iter().collect());
        let leases = Arc::new(Scripted { began, answers, asked: Mutex::default() });
        let holder = HolderId::parse("holder").expect("valid");
        let clock = Arc::new(Paused(began));
        let keeper = Arc::new(Keeper::new(leases.clone(), clock, holder, TTL, TURN_MAX));
        let renewing = Arc::clone(&keeper);
        tokio::spawn(async move { renewing.run().await });
        Self { keeper, leases }
    }

    fn keep(&self, name: &str) -> Grip {
        self.keeper.keep(token(name), self.now())
    }

    async fn while_ours<T>(&self, name: &str, work: impl Future<Output = T>) -> Option<T> {
        self.keeper.while_ours(&token(name), work).await
    }

    fn now(&self) -> Duration {
        self.leases.began.elapsed()
    }

    fn asked(&self) -> Vec<(u64, Vec<String>)> {
        self.leases.asked.lock().expect("sound").clone()
    }
}

async fn seconds(length: u64) {
    // A moment more, so that what is due at that second has happened.
    Paused(Instant::now()).sleep(Duration::from_millis(length * 1_000 + 1)).await;
}

#[tokio::test(start_paused = true)]
async fn each_third_of_the_ttl_all_leases_are_renewed_in_one_call() {
    let kept = Kept::at_work([]);
    let _grips = [kept.keep("a"), kept.keep("b"), kept.keep("c")];
    seconds(30).await;
    let all = vec!["a".to_owned(), "b".to_owned(), "c".to_owned()];
    assert_eq!(kept.asked(), [(10, all.clone()), (20, all.clone()), (30, all)]);
}

#[tokio::test(start_paused = true)]
async fn without_a_lease_nothing_is_asked() {
    let kept = Kept::at_work([]);
    seconds(100).await;
    assert_eq!(kept.asked(), []);
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_was_let_go_is_renewed_no_more() {
    let kept = Kept::at_work([]);
    let (a, _b) = (kept.keep("a"), kept.keep("b"));
    drop(a);
    seconds(10).await;
    assert_eq!(kept.asked(), [(10, vec!["b".to_owned()])]);
    assert!(!kept.keeper.holds(&token("a")));
}

/// Rule 10.
#[tokio::test(start_paused = true)]
async fn a_token_that_is_lost_ends_its_work_and_no_other() {
    let kept = Kept::at_work([Answer::Lost("a")]);
    let (a, b) = (kept.keep("a"), kept.keep("b"));
    let work = kept.while_ours("a", std::future::pending::<()>());
    assert_eq!(work.await, None);
    assert_eq!(kept.now().as_secs(), 10, "with the answer, not with the expiry");
    assert!(!a.holds() && b.holds());
}

/// X28.
#[tokio::test(start_paused = true)]
async fn a_holder_that_is_cut_off_stops_a_ttl_after_it_asked_by_its_own_clock() {
    for answers in [[Answer::Fails, Answer::Fails], [Answer::Hangs, Answer::Hangs]] {
        let kept = Kept::at_work(answers);
        let grip = kept.keep("a");
        seconds(29).await;
        assert!(grip.holds());
        kept.keeper.lost(&token("a")).await;
        assert_eq!(kept.now(), TTL);
        assert!(!grip.holds());
    }
}

/// X28.
#[tokio::test(start_paused = true)]
async fn a_renewal_counts_from_when_it_was_asked_for() {
    let late = Answer::Late(Duration::from_secs(15));
    let kept = Kept::at_work([late, Answer::Fails, Answer::Fails]);
    let grip = kept.keep("a");
    kept.keeper.lost(&token("a")).await;
    assert_eq!(kept.now().as_secs(), 10 + 30, "asked at 10, answered at 25");
    assert!(!grip.holds());
}

#[tokio::test(start_paused = true)]
async fn a_renewal_that_hangs_does_not_end_all_later_ones() {
    let kept = Kept::at_work([Answer::Hangs]);
    let _old = kept.keep("a");
    seconds(35).await;
    let new = kept.keep("b");
    seconds(35).await;
    assert!(new.holds());
}

/// X60.
#[tokio::test(start_paused = true)]
async fn a_turn_that_hangs_is_left_out_of_the_renewal_and_is_ended() {
    let kept = Kept::at_work([]);
    let (a, b) = (kept.keep("a"), kept.keep("b"));
    let hung = async move {
        let _grip = a;
        std::future::pending::<()>().await;
    };
    assert_eq!(kept.while_ours("a", hung).await, None);
    // Renewed for the last time at the turn's limit, it ends a ttl later.
    assert_eq!(kept.now(), TURN_MAX + TTL);
    seconds(10).await;
    let without: Vec<_> =
        kept.asked().into_iter().filter(|(_, names)| names.len() == 1).map(|(at, _)| at).collect();
    assert_eq!(without, [70, 80, 90, 100]);
    assert!(b.holds());
}

#[tokio::test(start_paused = true)]
async fn turns_that_end_are_renewed_for_ever() {
    let kept = Kept::at_work([]);
    let grip = kept.keep("a");
    for _ in 0..5 {
        let turn = kept.while_ours("a", seconds(50));
        assert_eq!(timeout(TTL * 2, turn).await, Ok(Some(())));
    }
    assert!(grip.holds());
}

#[tokio::test(start_paused = true)]
async fn work_under_a_lease_that_is_not_ours_does_not_begin() {
    let kept = Kept::at_work([]);
    let work = kept.while_ours("a", async { unreachable!("not ours") });
    assert_eq!(work.await, None::<()>);
}
