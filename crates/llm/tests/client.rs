//! Retries, timeouts, cancellation and permits of the client, in virtual time.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests may panic")]

mod support;

use bakeoff_core::{ErrorKind, NanoDollars, Prices};
use bakeoff_llm::{
    CallContext, CallError, Client, ClientConfig, HttpObserver, HttpRequest, HttpResponse, Model,
    ModelConfig, Retry, Transport, TransportError,
};
use bakeoff_pace::RetryPolicy;
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, join_all};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};
use support::{
    FakeServer, Reply, client, client_with, model, model_with_connections, prompt, resolve, summary,
};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

const SECOND: Duration = Duration::from_secs(1);

/// Timer resolution: a sleep takes at least the requested time, and at most this much longer.
const TIMER_RESOLUTION: Duration = Duration::from_millis(2);

/// Makes a call and returns its error.
async fn fail(client: &Client, model: &Model) -> CallError {
    client.call(model, prompt("hello"), &CallContext::default()).await.unwrap_err()
}

#[tokio::test(start_paused = true)]
async fn throttled_call_waits_for_retry_after_plus_jitter() {
    let server = FakeServer::new(|number| match number {
        0..6 => Reply::throttled("7"),
        _ => Reply::text("at last"),
    });
    let pauses = Mutex::new(Vec::new());
    let note = |retry: &Retry<'_>| pauses.lock().unwrap().push(retry.pause);
    let context = CallContext::default().on_retry(&note);
    let call = client(&server).call(&model(), prompt("hello"), &context).await.unwrap();
    assert_eq!((call.response.text().as_str(), call.retries), ("at last", 6));

    let pauses = pauses.into_inner().unwrap();
    assert!(pauses.iter().all(|pause| (7 * SECOND..8 * SECOND).contains(pause)), "{pauses:?}");
    assert!(pauses.iter().any(|pause| *pause != pauses[0]), "no jitter: {pauses:?}");
    let sent = server.sent();
    let gaps = sent.windows(2).map(|pair| pair[1].at - pair[0].at);
    for (pause, gap) in pauses.into_iter().zip(gaps) {
        assert!((pause..pause + TIMER_RESOLUTION).contains(&gap), "{gap:?} is not {pause:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn call_in_backoff_holds_no_permit() {
    let server = FakeServer::new(|number| match number {
        0 => Reply::throttled("60"),
        _ => Reply::text("fine"),
    });
    let (client, model) = (client(&server), model_with_connections(1));
    let context = CallContext::default();
    let (first, second) = tokio::join!(
        client.call(&model, prompt("first"), &context),
        client.call(&model, prompt("second"), &context),
    );
    assert_eq!((first.unwrap().retries, second.unwrap().retries), (1, 0));
    let sent = server.sent();
    let order: Vec<String> = sent.iter().map(support::SentRequest::user_text).collect();
    assert_eq!(order, ["first", "second", "first"]);
    assert_eq!(sent[1].at, sent[0].at, "the second call waited for the backoff of the first");
}

#[tokio::test(start_paused = true)]
async fn connection_error_keeps_its_message() {
    let server = FakeServer::always(Reply::connection_error("cannot connect to host"));
    let retry = RetryPolicy::default().max_retries(3);
    let error = fail(&client_with(&server, retry), &model()).await;
    assert_eq!(error.to_string(), "cannot connect to host");
}

#[tokio::test(start_paused = true)]
async fn max_retries_zero_sends_one_request() {
    let retry = RetryPolicy::default().max_retries(0);
    let replies = [
        (Reply::error(500, "server_error", "it broke"), ErrorKind::Transient, Some(500)),
        (Reply::throttled("1"), ErrorKind::RateLimit, Some(429)),
        (Reply::connection_error("connection refused"), ErrorKind::Transient, None),
    ];
    for (reply, kind, status) in replies {
        let server = FakeServer::always(reply);
        let error = fail(&client_with(&server, retry), &model()).await;
        assert_eq!((summary(&error), server.count()), ((kind, status, 0), 1));
    }
}

#[tokio::test(start_paused = true)]
async fn permanent_errors_are_not_retried() {
    let table = [
        (401, "invalid_api_key", "Incorrect API key provided.", ErrorKind::Auth),
        (400, "invalid_value", "temperature is too high", ErrorKind::InvalidRequest),
        (400, "context_length_exceeded", "too long", ErrorKind::ContextOverflow),
        (400, "content_filter", "not nice", ErrorKind::ContentFilter),
        (429, "insufficient_quota", "nothing left", ErrorKind::Quota),
    ];
    for (status, code, message, kind) in table {
        // A retry-after header does not make these errors retryable.
        let server =
            FakeServer::always(Reply::error(status, code, message).header("retry-after", "1"));
        let error = fail(&client(&server), &model()).await;
        let stops_pool = matches!(kind, ErrorKind::Auth | ErrorKind::Quota);
        let status = (!stops_pool).then_some(status);
        assert_eq!((summary(&error), server.count()), ((kind, status, 0), 1), "{code}");
        assert_eq!(error.failure.code.as_deref(), Some(code));
        // The messages of a stopped pool contain more than the provider's message.
        assert!(error.to_string().contains(message.trim_end_matches('.')), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn request_timeout_is_retried() {
    let slow = [Reply::no_response(), Reply::text("half").endless()];
    for reply in slow {
        let server = FakeServer::new(move |number| match number {
            0 => reply.clone(),
            _ => Reply::text("quick"),
        });
        let retry = RetryPolicy::default().attempt_timeout(5 * SECOND);
        let failures = Mutex::new(Vec::new());
        let note = |retry: &Retry<'_>| failures.lock().unwrap().push(retry.failure.clone());
        let context = CallContext::default().on_retry(&note);
        let call =
            client_with(&server, retry).call(&model(), prompt("hello"), &context).await.unwrap();
        assert_eq!((call.response.text().as_str(), call.retries), ("quick", 1));
        let failures = failures.into_inner().unwrap();
        assert_eq!(failures[0].kind, ErrorKind::Timeout);
        assert_eq!(failures[0].message, "no complete response within 5 s");
    }
}

#[tokio::test(start_paused = true)]
async fn call_timeout_ends_a_request_in_flight() {
    let server = FakeServer::always(Reply::no_response());
    let retry = RetryPolicy::default().timeout(10 * SECOND);
    let start = Instant::now();
    let error = fail(&client_with(&server, retry), &model()).await;
    assert_eq!((summary(&error), server.count()), ((ErrorKind::Timeout, None, 0), 1));
    assert_eq!(error.to_string(), "no complete response within 10 s");
    assert!((10 * SECOND..10 * SECOND + TIMER_RESOLUTION).contains(&start.elapsed()));
}

#[tokio::test(start_paused = true)]
async fn call_timeout_includes_requests_and_pauses() {
    // Two requests and a pause take 15 to 16 seconds, so a second pause of at least 5 exceeds the timeout.
    let server = FakeServer::always(Reply::throttled("5").after(5 * SECOND));
    let retry = RetryPolicy::default().timeout(20 * SECOND);
    let start = Instant::now();
    let error = fail(&client_with(&server, retry), &model()).await;
    assert_eq!(summary(&error), (ErrorKind::RateLimit, Some(429), 1));
    assert!(start.elapsed() < 20 * SECOND, "{:?}", start.elapsed());
}

#[tokio::test(start_paused = true)]
async fn pause_beyond_the_call_timeout_fails_at_once() {
    // The announced wait is within the timeout, but not within what is left of it.
    let server = FakeServer::always(Reply::throttled("5").after(8 * SECOND));
    let retry = RetryPolicy::default().timeout(10 * SECOND);
    let start = Instant::now();
    let error = fail(&client_with(&server, retry), &model()).await;
    assert_eq!(summary(&error), (ErrorKind::RateLimit, Some(429), 0));
    assert!(start.elapsed() < 8 * SECOND + TIMER_RESOLUTION);
}

#[tokio::test(start_paused = true)]
async fn waiting_for_a_permit_does_not_use_up_the_timeout() {
    let server = FakeServer::always(Reply::text("fine").after(8 * SECOND));
    let retry = RetryPolicy::default().timeout(10 * SECOND);
    let (client, model, context) =
        (client_with(&server, retry), model_with_connections(1), CallContext::default());
    let calls = join_all((0..5).map(|_| client.call(&model, prompt("hello"), &context))).await;
    assert!(calls.iter().all(Result::is_ok), "{calls:?}");
    // The latency does not include it either.
    assert!(calls.iter().flatten().all(|call| call.latency < 8 * SECOND + TIMER_RESOLUTION));
}

/// Cancels a call after a second and returns its error with the elapsed time.
async fn cancel(client: &Client, model: &Model) -> (CallError, Duration) {
    let context = CallContext::default();
    let start = Instant::now();
    let (result, ()) = tokio::join!(client.call(model, prompt("cancelled"), &context), async {
        tokio::time::sleep(SECOND).await;
        context.cancel.cancel();
    });
    (result.unwrap_err(), start.elapsed())
}

#[tokio::test(start_paused = true)]
async fn cancel_ends_a_call_waiting_for_a_permit() {
    let server = FakeServer::always(Reply::text("fine").after(30 * SECOND));
    let (client, model) = (client(&server), model_with_connections(1));
    let context = CallContext::default();
    let (first, (error, after)) =
        tokio::join!(client.call(&model, prompt("first"), &context), cancel(&client, &model),);
    assert_eq!(summary(&error), (ErrorKind::Cancelled, None, 0));
    assert!(after < SECOND + TIMER_RESOLUTION, "{after:?}");
    assert_eq!(first.unwrap().response.text(), "fine");
    assert_eq!(server.count(), 1);
}

#[tokio::test(start_paused = true)]
async fn cancel_ends_a_call_in_flight_and_returns_its_permit() {
    let server = FakeServer::new(|number| match number {
        0 => Reply::no_response(),
        _ => Reply::text("next"),
    });
    let (client, model) = (client(&server), model_with_connections(1));
    let (error, after) = cancel(&client, &model).await;
    assert_eq!(summary(&error), (ErrorKind::Cancelled, None, 0));
    assert!(after < SECOND + TIMER_RESOLUTION, "{after:?}");
    assert_eq!(server.in_flight(), 0);
    let next = client.call(&model, prompt("next"), &CallContext::default()).await.unwrap();
    assert_eq!(next.response.text(), "next");
}

#[tokio::test(start_paused = true)]
async fn cancel_ends_a_call_in_backoff() {
    let server = FakeServer::always(Reply::throttled("60"));
    let (error, after) = cancel(&client(&server), &model()).await;
    assert_eq!(error.failure.kind, ErrorKind::Cancelled);
    assert!(after < SECOND + TIMER_RESOLUTION, "{after:?}");
    assert_eq!(server.count(), 1);
}

#[tokio::test(start_paused = true)]
async fn call_cancelled_before_its_start_sends_nothing() {
    let server = FakeServer::always(Reply::text("too late"));
    let (client, model, context) = (client(&server), model(), CallContext::default());
    context.cancel.cancel();
    // Repeated, because a random order of polling would often pass.
    for _ in 0..32 {
        let error = client.call(&model, prompt("hello"), &context).await.unwrap_err();
        assert_eq!((error.failure.kind, server.count()), (ErrorKind::Cancelled, 0));
    }
}

#[tokio::test(start_paused = true)]
async fn cancelled_call_reports_its_retries() {
    let server = FakeServer::new(|number| match number {
        0..3 => Reply::throttled("0"),
        _ => Reply::no_response(),
    });
    let retry = RetryPolicy::default().base(Duration::from_millis(1));
    let (error, _) = cancel(&client_with(&server, retry), &model()).await;
    assert_eq!(summary(&error), (ErrorKind::Cancelled, None, 3));
}

#[tokio::test(start_paused = true)]
async fn requests_in_flight_never_exceed_connections() {
    // Some requests fail and are retried, and all take a while until their last byte.
    let server = FakeServer::new(|number| match number {
        0..10 => Reply::throttled("1").after(SECOND),
        10..20 => Reply::error(500, "server_error", "it broke").after(SECOND),
        _ => Reply::text("fine").after(3 * SECOND),
    });
    let (client, model, context) =
        (client(&server), model_with_connections(7), CallContext::default());
    let calls = join_all((0..100).map(|_| client.call(&model, prompt("hello"), &context))).await;
    assert!(calls.iter().all(Result::is_ok));
    assert_eq!((server.max_in_flight(), server.in_flight()), (7, 0));
}

#[tokio::test(start_paused = true)]
async fn each_model_has_its_own_pool() {
    let server = FakeServer::always(Reply::text("fine").after(SECOND));
    let (client, context) = (client(&server), CallContext::default());
    let models: Vec<Model> = ["a", "b", "c"]
        .map(|name| resolve(ModelConfig::named("openai", name)))
        .map(|model| model.with_limits(bakeoff_pace::Limits::fixed(1)))
        .into();
    let calls = models.iter().chain(&models);
    join_all(calls.map(|model| client.call(model, prompt("hello"), &context))).await;
    assert_eq!(server.max_in_flight(), 3);
}

/// Transport that waits for a connection before each request.
#[derive(Debug)]
struct SlowConnection(Arc<FakeServer>);

impl Transport for SlowConnection {
    fn send(&self, request: HttpRequest) -> BoxFuture<'_, Result<HttpResponse, TransportError>> {
        async move {
            tokio::time::sleep(9 * SECOND).await;
            request.sent.mark();
            self.0.send(request).await
        }
        .boxed()
    }
}

#[tokio::test(start_paused = true)]
async fn latency_excludes_the_wait_for_a_connection() {
    let server = FakeServer::always(Reply::text("fine").after(3 * SECOND));
    let recorded = Arc::new(Mutex::new((Duration::ZERO, SystemTime::UNIX_EPOCH)));
    let record = Arc::clone(&recorded);
    let observer = HttpObserver::new(move |request| {
        *record.lock().unwrap() = (request.latency, request.time);
    });
    let start = SystemTime::now();
    let config = ClientConfig::default().transport(Arc::new(SlowConnection(server)));
    let client = Client::new(config.on_http(observer));
    let call = client.call(&model(), prompt("hello"), &CallContext::default()).await.unwrap();
    let (latency, sent) = *recorded.lock().unwrap();
    assert!(sent >= start + 9 * SECOND);
    for latency in [call.latency, latency] {
        assert!((3 * SECOND..3 * SECOND + TIMER_RESOLUTION).contains(&latency), "{latency:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn latency_covers_only_the_successful_request() {
    let server = FakeServer::new(|number| match number {
        0 => Reply::throttled("60").after(9 * SECOND),
        _ => Reply::text("fine").after(3 * SECOND),
    });
    let call =
        client(&server).call(&model(), prompt("hello"), &CallContext::default()).await.unwrap();
    assert!(
        (3 * SECOND..3 * SECOND + TIMER_RESOLUTION).contains(&call.latency),
        "{:?}",
        call.latency
    );
}

#[tokio::test(start_paused = true)]
async fn cost_is_computed_from_usage_and_prices() {
    let server = FakeServer::always(Reply::text("fine"));
    let prices = Prices {
        input: NanoDollars(3_000_000_000),
        output: NanoDollars(15_000_000_000),
        ..Prices::default()
    };
    let costs = [
        (Some(prices), "the-model", Some(NanoDollars(10 * 3_000 + 5 * 15_000))),
        (None, "gpt-4o-mini", Some(NanoDollars(10 * 150 + 5 * 600))),
        (None, "the-model", None),
    ];
    for (prices, name, cost) in costs {
        let mut config = ModelConfig::named("openai", name);
        config.prices = prices;
        let model = resolve(config);
        let call = client(&server).call(&model, prompt("hello"), &CallContext::default()).await;
        assert_eq!(call.unwrap().cost, cost, "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn stopped_call_sends_no_further_request() {
    let stop = CancellationToken::new();
    let stopping = stop.clone();
    let on_retry = move |_: &Retry<'_>| stopping.cancel();
    let server = FakeServer::always(Reply::throttled("60"));
    let context = CallContext::default().stop(stop.clone()).on_retry(&on_retry);
    let error = client(&server).call(&model(), prompt("hello"), &context).await.unwrap_err();
    assert_eq!((error.failure.kind, server.count()), (ErrorKind::Cancelled, 1));
    let error = client(&server).call(&model(), prompt("hello"), &context).await.unwrap_err();
    assert_eq!((error.failure.kind, server.count()), (ErrorKind::Cancelled, 1));
}

#[tokio::test]
async fn failure_keeps_response_headers() {
    let server =
        FakeServer::always(Reply::error(400, "x", "y").header("x-ratelimit-limit-requests", "5"));
    let error =
        client(&server).call(&model(), prompt("hello"), &CallContext::default()).await.unwrap_err();
    assert_eq!(error.failure.headers["x-ratelimit-limit-requests"], "5");
}
