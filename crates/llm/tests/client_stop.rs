//! Failures that stop a pool, outages and stalls, in virtual time.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests may panic")]

mod support;

use bakeoff_core::ErrorKind;
use bakeoff_llm::{
    CallContext, CallError, Client, ClientConfig, Model, Transport, TransportErrorKind,
};
use bakeoff_pace::{Limits, RetryPolicy, Strategy};
use futures_util::future::join_all;
use std::sync::Arc;
use std::time::Duration;
use support::{FakeServer, Reply, client, client_with, model, prompt, summary};
use tokio::time::Instant;

const SECOND: Duration = Duration::from_secs(1);

/// Makes calls at the same time and returns their errors.
async fn fail_all(client: &Client, model: &Model, count: usize) -> Vec<CallError> {
    let context = CallContext::default();
    let calls = (0..count).map(|_| client.call(model, prompt("hello"), &context));
    join_all(calls).await.into_iter().map(Result::unwrap_err).collect()
}

/// Returns models of all strategies.
fn models() -> Vec<(Strategy, Model)> {
    let limits = |strategy| match strategy {
        Strategy::Proactive => Limits::new(strategy).rpm(1000),
        _ => Limits::new(strategy),
    };
    Strategy::ALL
        .into_iter()
        .map(|strategy| (strategy, model().with_limits(limits(strategy))))
        .collect()
}

#[tokio::test(start_paused = true)]
async fn rejected_key_stops_the_pool() {
    for (strategy, model) in models() {
        for status in [401, 403] {
            let server =
                FakeServer::always(Reply::error(status, "denied", "No access.").after(SECOND));
            let client = client(&server);
            let errors = fail_all(&client, &model, 1).await;
            assert_eq!(summary(&errors[0]), (ErrorKind::Auth, None, 0), "{strategy}");
            let message = errors[0].to_string();
            let expected = format!("{status}: No access; no further calls");
            assert!(message.starts_with(&expected), "{message}");
            assert!(message.contains("check OPENAI_API_KEY"), "{message}");
            let later = fail_all(&client, &model, 5).await;
            assert!(later.iter().all(|error| error.failure.kind == ErrorKind::Auth));
            assert_eq!(server.count(), 1, "{strategy}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn announced_wait_beyond_the_timeout_stops_the_pool() {
    for (strategy, model) in models() {
        for (reply, timeout) in [
            (Reply::throttled("86400"), 20),
            (Reply::throttled("86400"), 600),
            (Reply::error(503, "unavailable", "maintenance").header("retry-after", "700"), 600),
            (Reply::error(429, "limited", "Please try again in 7h12m0s."), 600),
            (Reply::error(429, "limited", "Please try again in 7h12m."), 600),
        ] {
            let server = FakeServer::always(reply);
            let client = client_with(&server, RetryPolicy::default().timeout(timeout * SECOND));
            let start = Instant::now();
            let errors = fail_all(&client, &model, 30).await;
            for error in errors {
                assert_eq!(error.failure.kind, ErrorKind::Quota, "{strategy}");
                let message = error.to_string();
                assert!(message.contains("blocked by the provider until "), "{message}");
                assert!(message.contains(&format!("timeout of {timeout} s")), "{message}");
            }
            assert!(start.elapsed() < SECOND, "{strategy}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn announced_wait_beyond_the_deadline_stops_the_pool() {
    for (wait, is_stopped) in [("20", true), ("5", false)] {
        let server = FakeServer::new(move |number| match number {
            0 => Reply::throttled(wait),
            _ => Reply::text("fine"),
        });
        let transport: Arc<dyn Transport> = server.clone();
        let deadline = Instant::now() + 10 * SECOND;
        let config = ClientConfig::default().transport(transport).deadline(deadline);
        let context = CallContext::default();
        let result = Client::new(config).call(&model(), prompt("hello"), &context).await;
        assert_eq!(result.is_err(), is_stopped, "{wait}");
        if let Err(error) = result {
            assert!(error.to_string().contains("the deadline of the run"), "{error}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn unreachable_server_stops_the_pool_soon() {
    use TransportErrorKind::{Certificate, Connect, ConnectionLost, HostNotFound, Proxy};
    let table = [
        (Connect, "base_url", 10..16),
        (HostNotFound, "base_url", 10..16),
        (Certificate, "SSL_CERT_FILE", 0..1),
        (Proxy, "HTTPS_PROXY", 0..1),
        (ConnectionLost, "https://", 20..26),
    ];
    for (kind, hint, seconds) in table {
        for (strategy, model) in models() {
            for calls in [1, 100] {
                let server = FakeServer::always(Reply::unreachable(kind, "cannot reach it"));
                let (client, start) = (client(&server), Instant::now());
                let errors = fail_all(&client, &model, calls).await;
                let elapsed = start.elapsed().as_secs();
                assert!(seconds.contains(&elapsed), "{strategy}, {kind:?}: {elapsed} s");
                for error in &errors {
                    assert_eq!(error.failure.kind, ErrorKind::Transient);
                    let message = error.to_string();
                    assert!(message.contains("cannot reach it"), "{message}");
                    assert!(message.contains(hint), "{message}");
                }
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn unreachable_server_is_named_before_the_deadline() {
    let server = FakeServer::always(Reply::unreachable(TransportErrorKind::Connect, "refused"));
    let transport: Arc<dyn Transport> = server.clone();
    let (start, deadline) = (Instant::now(), Instant::now() + 8 * SECOND);
    let config = ClientConfig::default().transport(transport).deadline(deadline);
    let errors = fail_all(&Client::new(config), &model(), 3).await;
    assert!(start.elapsed() < 8 * SECOND, "{:?}", start.elapsed());
    assert!(errors[0].to_string().contains("check base_url"), "{}", errors[0]);
}

#[tokio::test(start_paused = true)]
async fn hint_fits_the_problem_with_the_certificate() {
    let table = [
        ("invalid peer certificate: UnknownIssuer", "SSL_CERT_FILE"),
        ("invalid peer certificate: Other(OtherError(CaUsedAsEndEntity))", "CA:FALSE"),
        ("invalid peer certificate: certificate not valid for name \"a\"; …", "base_url"),
        ("invalid peer certificate: certificate expired: verification time …", "renew"),
        ("received corrupt message of type InvalidContentType", "http://"),
    ];
    for (problem, hint) in table {
        let server =
            FakeServer::always(Reply::unreachable(TransportErrorKind::Certificate, problem));
        let error = fail_all(&client(&server), &model(), 1).await.remove(0).to_string();
        let (_, remedy) = error.split_once("in this run; ").unwrap();
        assert!(remedy.contains(hint), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn server_that_answered_before_is_not_unreachable() {
    let server = FakeServer::new(|number| match number {
        1..12 => Reply::unreachable(TransportErrorKind::Connect, "connection refused"),
        _ => Reply::text("fine"),
    });
    let (client, context) = (client(&server), CallContext::default());
    for _ in 0..2 {
        client.call(&model(), prompt("hello"), &context).await.unwrap();
    }
    assert_eq!(server.count(), 13);
}

/// Returns a server that answers in a tenth of a second and is down in between.
fn server_with_outage(from: u64, to: u64, status: u16) -> Arc<FakeServer> {
    let start = Instant::now();
    FakeServer::new(move |_| {
        let is_down = (from..to).contains(&start.elapsed().as_secs());
        match is_down {
            true => Reply::error(status, "overloaded", "try later"),
            false => Reply::text("fine").after(SECOND / 10),
        }
    })
}

#[tokio::test(start_paused = true)]
async fn calls_survive_an_outage_and_return_soon_after_it() {
    for (from, to, status) in [(0, 35, 503), (2, 92, 529)] {
        for (strategy, model) in models() {
            for calls in [1, 60] {
                let server = server_with_outage(from, to, status);
                let (client, start) = (client(&server), Instant::now());
                tokio::time::sleep(Duration::from_secs(from)).await;
                let context = CallContext::default();
                let calls = (0..calls).map(|_| client.call(&model, prompt("hello"), &context));
                let lost = join_all(calls).await.into_iter().filter(Result::is_err).count();
                assert_eq!(lost, 0, "{strategy}");
                let after = start.elapsed().as_secs().saturating_sub(to);
                assert!(after < 8, "{strategy}: {after} s after the outage");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn endless_outage_stops_the_pool() {
    for (answers, seconds) in [(0, 120..126), (1, 600..606)] {
        for (strategy, model) in models() {
            let server = FakeServer::new(move |number| match number < answers {
                true => Reply::text("fine"),
                false => Reply::error(500, "server_error", "it broke"),
            });
            let client = client(&server);
            for _ in 0..answers {
                client.call(&model, prompt("hello"), &CallContext::default()).await.unwrap();
            }
            let start = Instant::now();
            let errors = fail_all(&client, &model, 400).await;
            assert!(seconds.contains(&start.elapsed().as_secs()), "{strategy}");
            let error = errors.last().unwrap();
            assert_eq!(error.failure.kind, ErrorKind::Transient);
            assert!(error.to_string().contains("no request to the-model succeeded"), "{error}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn endless_rejections_stop_the_pool() {
    for (strategy, model) in models() {
        let server = FakeServer::always(Reply::error(429, "limited", "slow down"));
        let (client, start) = (client(&server), Instant::now());
        let errors = fail_all(&client, &model, 20).await;
        for error in errors {
            assert_eq!(error.failure.kind, ErrorKind::RateLimit, "{strategy}: {error}");
        }
        let elapsed = start.elapsed();
        assert!(elapsed < 700 * SECOND, "{strategy}: {elapsed:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn stalled_request_is_retried_once_latencies_are_known() {
    for (answers, seconds) in [(20, 15..17), (0, 300..302)] {
        let server = FakeServer::new(move |number| match number {
            0 => Reply::no_response(),
            _ => Reply::text("fine").after(SECOND),
        });
        let (client, model, context) = (client(&server), model(), CallContext::default());
        let start = Instant::now();
        let calls = (0..=answers).map(|_| client.call(&model, prompt("hello"), &context));
        let calls: Vec<_> = join_all(calls).await.into_iter().map(Result::unwrap).collect();
        assert_eq!(calls.iter().map(|call| call.retries).max(), Some(1));
        let elapsed = start.elapsed().as_secs();
        assert!(seconds.contains(&elapsed), "{answers}: {elapsed} s");
    }
}

#[tokio::test(start_paused = true)]
async fn stalled_request_is_retried_within_a_short_timeout() {
    let server = FakeServer::new(|number| match number {
        5 => Reply::no_response(),
        _ => Reply::text("fine").after(SECOND),
    });
    let retry = RetryPolicy::default().timeout(60 * SECOND);
    let (client, model, context) = (client_with(&server, retry), model(), CallContext::default());
    for _ in 0..6 {
        client.call(&model, prompt("hello"), &context).await.unwrap();
    }
    assert_eq!(server.count(), 7);
}

#[tokio::test(start_paused = true)]
async fn server_that_never_responds_stops_the_pool() {
    for (timeout, seconds) in [(600, 300..310), (130, 130..140), (20, 40..70)] {
        let server = FakeServer::always(Reply::no_response());
        let client = client_with(&server, RetryPolicy::default().timeout(timeout * SECOND));
        let start = Instant::now();
        let errors = fail_all(&client, &model(), 100).await;
        let stopped = errors.iter().filter(|error| error.to_string().contains("check base_url"));
        assert!(stopped.count() > 30, "{timeout}: {}", errors[99]);
        let elapsed = start.elapsed().as_secs();
        assert!(seconds.contains(&elapsed), "{timeout}: {elapsed} s");
    }
}

#[tokio::test(start_paused = true)]
async fn first_requests_may_take_most_of_the_timeout() {
    for (timeout, latency) in [(90, 80), (130, 110), (450, 400), (600, 290)] {
        let server = FakeServer::always(Reply::text("slow").after(latency * SECOND));
        let client = client_with(&server, RetryPolicy::default().timeout(timeout * SECOND));
        let (model, context) = (model(), CallContext::default());
        let calls = (0..8).map(|_| client.call(&model, prompt("hello"), &context));
        assert!(join_all(calls).await.iter().all(Result::is_ok), "{timeout}");
        assert_eq!(server.count(), 8, "{timeout}");
    }
}

#[tokio::test(start_paused = true)]
async fn stalled_request_ends_soon_after_the_deadline() {
    let server = FakeServer::always(Reply::no_response());
    let transport: Arc<dyn Transport> = server.clone();
    let (start, deadline) = (Instant::now(), Instant::now() + 10 * SECOND);
    let config = ClientConfig::default().transport(transport).deadline(deadline);
    let client = Client::new(config.retry(RetryPolicy::default().max_retries(0)));
    let errors = fail_all(&client, &model(), 1).await;
    assert_eq!(errors[0].to_string(), "no complete response within 15 s after the deadline");
    assert_eq!(start.elapsed().as_secs(), 25);
}

#[tokio::test(start_paused = true)]
async fn lost_connections_do_not_stop_a_slow_server() {
    let server = FakeServer::new(|number| match number {
        // The first call and its retries, beside seven slow requests.
        0 | 8..40 => Reply::unreachable(TransportErrorKind::ConnectionLost, "reset"),
        _ => Reply::text("slow").after(60 * SECOND),
    });
    let (client, model, context) = (client(&server), model(), CallContext::default());
    let calls = (0..8).map(|_| client.call(&model, prompt("hello"), &context));
    for call in join_all(calls).await {
        assert_eq!(call.unwrap().response.text(), "slow");
    }
}

#[tokio::test(start_paused = true)]
async fn slow_request_gets_more_time_after_its_second_timeout() {
    // The twenty fast answers suggest a limit of 15 s; the slow request needs 125 s.
    let server = FakeServer::new(|number| match number {
        0..20 => Reply::text("fine").after(SECOND),
        _ => Reply::text("slow").after(125 * SECOND),
    });
    let (client, context) = (client(&server), CallContext::default());
    for _ in 0..20 {
        client.call(&model(), prompt("hello"), &context).await.unwrap();
    }
    let call = client.call(&model(), prompt("hello"), &context).await.unwrap();
    assert_eq!((call.response.text().as_str(), call.retries), ("slow", 3));
}
