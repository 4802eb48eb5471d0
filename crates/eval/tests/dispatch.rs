//! Number of concurrent trials, in virtual time.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may fail")]

use bakeoff_core::Event;
use bakeoff_eval::{FinishedRun, Run, RunConfig, Stopper};
use bakeoff_llm::{HttpRequest, HttpResponse, Transport, TransportError, TransportErrorKind};
use bakeoff_suite::Suite;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::Instant;

/// Returns a suite with one model over HTTP and a number of targets.
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

/// A server whose first requests fail immediately, and that answers the others after a second.
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
                return Err(TransportError::new(TransportErrorKind::ConnectionLost, "lost"));
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

/// Runs a suite. Returns the run, the maximum number of concurrent trials, and the times of requests.
async fn run(suite: &str, failures: usize) -> (FinishedRun, usize, Vec<Duration>) {
    let (mut running, mut max) = (0_usize, 0);
    let mut listen = |event: &Event| {
        match event {
            Event::TrialStarted { .. } => running += 1,
            Event::TrialFinished { .. } => running -= 1,
            _ => {}
        }
        max = max.max(running);
    };
    let (finished, times) = run_with_listener(suite, failures, &mut listen).await;
    (finished, max, times)
}

/// Runs a suite. Returns the run and the times of requests.
async fn run_with_listener(
    suite: &str,
    failures: usize,
    listen: &mut (dyn FnMut(&Event) + Send),
) -> (FinishedRun, Vec<Duration>) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bakeoff.toml");
    std::fs::write(&path, suite).unwrap();
    let suite = Suite::load(&path, &|_| None).unwrap();
    let server = Arc::new(Server { failures, sent: Mutex::default() });
    let mut config = RunConfig::new(folder.path().join("runs"));
    config.transport = Some(server.clone());
    let run = Run::new(suite, config).unwrap();
    let finished = run.execute(&Stopper::default(), listen).await.unwrap();
    let sent = server.sent.lock().unwrap();
    let times = sent.iter().map(|time| *time - sent[0]).collect();
    (finished, times)
}

#[tokio::test(start_paused = true)]
async fn trials_in_preparation_follow_the_window() {
    // Targets with the same pool share its limit.
    for targets in [1, 2] {
        let (_, max, times) =
            run(&suite("strategy = \"fixed\", connections = 3", targets, 30), 0).await;
        assert_eq!(max, 3 + 4);
        assert_eq!(times.len(), 30 * targets);
        assert_eq!(times[times.len() - 1].as_secs(), 10 * targets as u64 - 1);
    }
    let limits = "strategy = \"adaptive\", connections = \"1-2-16\"";
    let (finished, max, _) = run(&suite(limits, 1, 100), 0).await;
    assert_eq!(max, 16 + 4);
    let history = finished.summary.stats.connection_limit_history;
    let limits: Vec<u32> = history.iter().map(|change| change.new_limit).collect();
    assert_eq!(limits, [4, 8, 16]);
}

/// Returns a suite with a chain of two models, each with a limit of three requests.
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
async fn trials_of_a_chain_use_the_limits_of_all_pools() {
    let (finished, max, times) = run(&chain(30), 0).await;
    assert_eq!(max, 2 * (3 + 4));
    assert_eq!(times.len(), 60);
    assert_eq!(finished.summary.targets[0].passed, 30);
    // Both models are busy all the time, except in the first and last second.
    assert_eq!(times[times.len() - 1].as_secs(), 10);
}

#[tokio::test(start_paused = true)]
async fn conflicting_limits_of_a_pool_cause_a_warning() {
    let two = suite("strategy = \"fixed\", connections = 3", 2, 5).replacen(
        "[cases]",
        "[models.n]\nprovider = \"openai\"\nmodel = \"m\"\nbase_url = \"http://127.0.0.1:1/v1\"\n[cases]",
        1,
    );
    let warnings = async |suite: &str| {
        let mut warnings = Vec::new();
        run_with_listener(suite, 0, &mut |event| {
            if let Event::Warning { code, message } = event {
                warnings.push(format!("{code}: {message}"));
            }
        })
        .await;
        warnings
    };
    assert_eq!(warnings(&two).await, Vec::<String>::new());
    let different = two.replacen("name = \"t1\"\nmodel = \"m\"", "name = \"t1\"\nmodel = \"n\"", 1);
    let message = "PACE_LIMITS_DIFFER: the targets `t0` and `t1` use one model with one key, and so \
                   one pool; the limits of `t0` apply to both";
    assert_eq!(warnings(&different).await, [message]);
}

#[tokio::test(start_paused = true)]
async fn unlimited_pool_starts_all_trials() {
    let (_, max, times) = run(&suite("strategy = \"none\"", 1, 500), 0).await;
    assert_eq!((max, times.len()), (500, 500));
    assert!(times.iter().all(Duration::is_zero));
}

#[tokio::test(start_paused = true)]
async fn calls_that_back_off_free_their_capacity() {
    let limits = "strategy = \"fixed\", connections = 2";
    let (finished, _, times) = run(&suite(limits, 1, 40), 4).await;
    // Four requests fail, and two others take their place at once.
    let immediate = times.iter().filter(|time| time.is_zero()).count();
    assert_eq!(immediate, 6, "{times:?}");
    assert_eq!(finished.summary.stats.retries, 4);
}
