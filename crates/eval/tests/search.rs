//! Number of concurrent cells of a search, in virtual time.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may fail")]

mod support;

use bakeoff_core::Event;
use bakeoff_eval::{SearchOverrides, SearchRun, Stopper};
use bakeoff_llm::{HttpRequest, HttpResponse, Transport, TransportError};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use std::fmt::Write;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use support::{COMBINATIONS, TestSuite};
use tokio::time::Instant;

/// Returns a suite with a role that has a candidate for each of these limits, and 20 cases.
fn suite(limits: &[&str]) -> String {
    let mut text = String::from(
        "[suite]\ncache = \"none\"\n[[target]]\nname = \"agent\"\n\
         [[target.chain]]\nrole = \"solver\"\nprompt = \"{{ word }}\"\n\
         [[check]]\nkind = \"contains\"\nvalue = \"fine\"\n",
    );
    let names: Vec<String> = (0..limits.len()).map(|number| format!("\"m{number}\"")).collect();
    let names = names.join(", ");
    writeln!(text, "[select]\nmethod = \"brute_force\"\n[select.roles]\nsolver = [{names}]")
        .unwrap();
    for (number, limits) in limits.iter().enumerate() {
        writeln!(
            text,
            "[models.m{number}]\nprovider = \"openai\"\nmodel = \"m{number}\"\n\
             base_url = \"http://127.0.0.1:1/v1\"\nlimits = {{ {limits} }}"
        )
        .unwrap();
    }
    for case in 0..20 {
        writeln!(text, "[[cases.inline]]\nid = \"c{case}\"\nword = \"w{case}\"").unwrap();
    }
    text
}

/// A server that answers after a second.
#[derive(Debug, Default)]
struct Server {
    sent: Mutex<Vec<Instant>>,
}

impl Transport for Server {
    fn send(&self, _: HttpRequest) -> BoxFuture<'_, Result<HttpResponse, TransportError>> {
        self.sent.lock().unwrap().push(Instant::now());
        async move {
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

/// Searches a suite. Returns the number of cells, the maximum number of concurrent cells, and the
/// times of requests.
async fn search(suite: &str) -> (usize, usize, Vec<Duration>) {
    let test = TestSuite::new(suite);
    let server = Arc::new(Server::default());
    let mut config = test.config();
    config.transport = Some(server.clone());
    let suite = test.load(COMBINATIONS).unwrap();
    let search = SearchRun::new(suite, config, &SearchOverrides::default()).unwrap();
    let (mut running, mut max) = (0_usize, 0);
    let mut listen = |event: &Event| {
        match event {
            Event::TrialStarted { .. } => running += 1,
            Event::TrialFinished { .. } => running -= 1,
            _ => {}
        }
        max = max.max(running);
    };
    let finished = search.execute(&Stopper::default(), &mut listen, &mut |_| {}).await.unwrap();
    let sent = server.sent.lock().unwrap();
    let times = sent.iter().map(|time| *time - sent[0]).collect();
    (finished.found.unwrap().selection.cells, max, times)
}

#[tokio::test(start_paused = true)]
async fn running_cells_follow_the_limits_of_their_pools() {
    let limits = ["strategy = \"fixed\", connections = 3", "strategy = \"fixed\", connections = 5"];
    let (cells, max, times) = search(&suite(&limits)).await;
    assert_eq!((cells, times.len()), (40, 40));
    assert_eq!(max, (3 + 4) + (5 + 4));
    // Neither combination waits for the other.
    assert_eq!(times.iter().filter(|time| time.is_zero()).count(), 3 + 5);
    assert_eq!(times[times.len() - 1].as_secs(), 6);
}

#[tokio::test(start_paused = true)]
async fn twenty_cells_run_at_once_if_nothing_limits_them() {
    let limits = ["strategy = \"none\""; 15];
    let (cells, max, times) = search(&suite(&limits)).await;
    assert_eq!((cells, max, times.len()), (300, 20, 300));
}

#[tokio::test(start_paused = true)]
async fn parallel_limits_all_cells() {
    let limits = ["strategy = \"none\""; 3];
    let suite = suite(&limits).replacen("[suite]", "[suite]\nparallel = 7", 1);
    let (cells, max, _) = search(&suite).await;
    assert_eq!((cells, max), (60, 7));
}
