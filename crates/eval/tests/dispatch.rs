//! How many trials are under way at once, in virtual time.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may fail")]

use bakeoff_core::Event;
use bakeoff_eval::{Finished, Run, RunConfig, Stopper};
use bakeoff_llm::{HttpRequest, HttpResponse, Transport, TransportError};
use bakeoff_suite::Suite;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::Instant;

/// A suite on one model over HTTP, with as many targets as wanted.
fn suite(limits: &str, targets: usize, cases: usize) -> String {
    let mut text = format!(
        "[suite]\nartifacts = \"none\"\ncache = \"none\"\n[models.m]\nprovider = \"openai\"\nmodel = \"m\"\n\
         base_url = \"http://127.0.0.1:1/v1\"\nlimits = {{ {limits} }}\n[cases]\ninline = ["
    );
    for case in 0..cases {
        text.push_str(&format!("{{ word = \"w{case}\" }}, "));
    }
    text.push_str("]\n[[check]]\nkind = \"contains\"\nvalue = \"fine\"\n");
    for target in 0..targets {
        text.push_str(&format!(
            "[[target]]\nname = \"t{target}\"\nmodel = \"m\"\nprompt = \"{{{{ word }}}}\"\n"
        ));
    }
    text
}

/// Takes a second for each answer, after the first requests have failed at once.
#[derive(Debug)]
struct Server {
    failures: usize,
    sent: Mutex<Vec<Instant>>,
}

impl Transport for Server {
    fn send(&self, _: HttpRequest) -> BoxFuture<'_, Result<HttpResponse, TransportError>> {
        let number = {
            let mut sent = self.sent.lock().unwrap();
            sent.push(Instant::now());
            sent.len()
        };
        async move {
            if number <= self.failures {
                return Err(TransportError("lost".to_owned()));
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
            let body = r#"{"choices": [{"message": {"role": "assistant", "content": "fine"}, "finish_reason": "stop"}]}"#;
            Ok(HttpResponse {
                status: http::StatusCode::OK,
                headers: http::HeaderMap::new(),
                body: Box::pin(futures_util::stream::iter([Ok(body.into())])),
            })
        }
        .boxed()
    }
}

/// What a run came to, most trials at once, and when requests were sent.
async fn run(suite: &str, failures: usize) -> (Finished, usize, Vec<Duration>) {
    let (mut now, mut most) = (0_usize, 0);
    let mut listen = |event: &Event| {
        match event {
            Event::TrialStarted { .. } => now += 1,
            Event::TrialFinished { .. } => now -= 1,
            _ => {}
        }
        most = most.max(now);
    };
    let (finished, times) = run_told(suite, failures, &mut listen).await;
    (finished, most, times)
}

/// What a run came to, and when requests were sent.
async fn run_told(
    suite: &str,
    failures: usize,
    listen: &mut (dyn FnMut(&Event) + Send),
) -> (Finished, Vec<Duration>) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bakeoff.toml");
    std::fs::write(&path, suite).unwrap();
    let suite = Suite::load(&path, &|_| None).unwrap();
    let server = Arc::new(Server { failures, sent: Mutex::default() });
    let config = RunConfig {
        out: folder.path().join("runs"),
        transport: Some(server.clone()),
        ..RunConfig::default()
    };
    let run = Run::new(suite, config).unwrap();
    let finished = run.execute(&Stopper::default(), listen).await.unwrap();
    let sent = server.sent.lock().unwrap();
    let times = sent.iter().map(|time| *time - sent[0]).collect();
    (finished, times)
}

#[tokio::test(start_paused = true)]
async fn trials_in_preparation_follow_the_window() {
    // Targets on one pool share its room.
    for targets in [1, 2] {
        let (_, most, times) =
            run(&suite("strategy = \"fixed\", connections = 3", targets, 30), 0).await;
        assert_eq!(most, 3 + 4);
        assert_eq!(times.len(), 30 * targets);
        assert_eq!(times[times.len() - 1].as_secs(), 10 * targets as u64 - 1);
    }
    let limits = "strategy = \"adaptive\", connections = \"1-2-16\"";
    let (finished, most, _) = run(&suite(limits, 1, 100), 0).await;
    assert_eq!(most, 16 + 4);
    let history = finished.summary.stats.connection_limit_history;
    let limits: Vec<u32> = history.iter().map(|change| change.new_limit).collect();
    assert_eq!(limits, [4, 8, 16]);
}

/// A chain over two models, each of which answers three at a time.
fn chain(cases: usize) -> String {
    let steps = "[[target.chain]]\nname = \"a\"\nmodel = \"m\"\nprompt = \"{{ word }}\"\n\
                 [[target.chain]]\nname = \"b\"\nmodel = \"n\"\nprompt = \"{{ a }}\"\n";
    let limits = "limits = { strategy = \"fixed\", connections = 3 }";
    format!(
        "{}[models.n]\nprovider = \"openai\"\nmodel = \"n\"\nbase_url = \"http://127.0.0.1:1/v1\"\n{limits}\n\
         [[target]]\nname = \"pipeline\"\n{steps}",
        suite("strategy = \"fixed\", connections = 3", 0, cases)
    )
}

#[tokio::test(start_paused = true)]
async fn trials_of_a_chain_fill_the_windows_of_all_its_pools() {
    let (finished, most, times) = run(&chain(30), 0).await;
    assert_eq!(most, 2 * (3 + 4));
    assert_eq!(times.len(), 60);
    assert_eq!(finished.summary.targets[0].passed, 30);
    // Both models are busy all the time, but for the first second of one and the last of the other.
    assert_eq!(times[times.len() - 1].as_secs(), 10);
}

#[tokio::test(start_paused = true)]
async fn limits_that_cannot_all_hold_are_told() {
    let two = suite("strategy = \"fixed\", connections = 3", 2, 5).replacen(
        "[cases]",
        "[models.n]\nprovider = \"openai\"\nmodel = \"m\"\nbase_url = \"http://127.0.0.1:1/v1\"\n[cases]",
        1,
    );
    let told = async |suite: &str| {
        let mut warnings = Vec::new();
        run_told(suite, 0, &mut |event| {
            if let Event::Warning { code, message } = event {
                warnings.push(format!("{code}: {message}"));
            }
        })
        .await;
        warnings
    };
    assert_eq!(told(&two).await, Vec::<String>::new());
    let different = two.replacen("name = \"t1\"\nmodel = \"m\"", "name = \"t1\"\nmodel = \"n\"", 1);
    let message = "PACE_LIMITS_DIFFER: the targets `t0` and `t1` use one model with one key, and so \
                   one pool; the limits of `t0` hold for both";
    assert_eq!(told(&different).await, [message]);
}

#[tokio::test(start_paused = true)]
async fn a_window_without_a_bound_takes_what_there_is() {
    let (_, most, times) = run(&suite("strategy = \"none\"", 1, 500), 0).await;
    assert_eq!((most, times.len()), (500, 500));
    assert!(times.iter().all(Duration::is_zero));
}

#[tokio::test(start_paused = true)]
async fn calls_that_back_off_leave_their_room_to_others() {
    let limits = "strategy = \"fixed\", connections = 2";
    let (finished, _, times) = run(&suite(limits, 1, 40), 8).await;
    // 2 in flight and 4 in preparation, and 2 more for two of those that wait.
    let at_once = times.iter().filter(|time| time.is_zero()).count();
    assert_eq!(at_once, 8, "{times:?}");
    assert_eq!(finished.summary.stats.retries, 8);
}
