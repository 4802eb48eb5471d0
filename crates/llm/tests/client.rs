//! Retries, deadlines, cancelling and permits of the client, in virtual time.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may fail")]

mod support;

use bakeoff_core::{ErrorKind, NanoDollars, Prices};
use bakeoff_llm::{CallContext, CallError, Client, Model, ModelConfig, Retry};
use bakeoff_pace::RetryPolicy;
use futures_util::future::join_all;
use std::sync::Mutex;
use std::time::Duration;
use support::{Fake, Reply, ask, client, client_with, model, model_with, outline, resolve};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

const SECOND: Duration = Duration::from_secs(1);

/// The timer's grain: no sleep is shorter than asked for, and none longer than by this.
const GRAIN: Duration = Duration::from_millis(2);

/// Calls until the call fails.
async fn fail(client: &Client, model: &Model) -> CallError {
    client.call(model, ask("hello"), &CallContext::default()).await.unwrap_err()
}

#[tokio::test(start_paused = true)]
async fn a_throttled_call_waits_as_long_as_the_provider_asks_and_a_little_more() {
    let fake = Fake::new(|number| match number {
        0..6 => Reply::throttled("7"),
        _ => Reply::text("at last"),
    });
    let pauses = Mutex::new(Vec::new());
    let note = |retry: &Retry<'_>| pauses.lock().unwrap().push(retry.pause);
    let context = CallContext { on_retry: Some(&note), ..CallContext::default() };
    let call = client(&fake).call(&model(), ask("hello"), &context).await.unwrap();
    assert_eq!((call.response.text().as_str(), call.retries), ("at last", 6));

    let pauses = pauses.into_inner().unwrap();
    assert!(pauses.iter().all(|pause| (7 * SECOND..8 * SECOND).contains(pause)), "{pauses:?}");
    assert!(pauses.iter().any(|pause| *pause != pauses[0]), "no jitter: {pauses:?}");
    let sent = fake.sent();
    let gaps = sent.windows(2).map(|pair| pair[1].at - pair[0].at);
    for (pause, gap) in pauses.into_iter().zip(gaps) {
        assert!((pause..pause + GRAIN).contains(&gap), "{gap:?} is not {pause:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_pauses_holds_no_permit() {
    let fake = Fake::new(|number| match number {
        0 => Reply::throttled("60"),
        _ => Reply::text("fine"),
    });
    let (client, model) = (client(&fake), model_with(1));
    let context = CallContext::default();
    let (first, second) = tokio::join!(
        client.call(&model, ask("first"), &context),
        client.call(&model, ask("second"), &context),
    );
    assert_eq!((first.unwrap().retries, second.unwrap().retries), (1, 0));
    let sent = fake.sent();
    let order: Vec<String> = sent.iter().map(support::Sent::prompt).collect();
    assert_eq!(order, ["first", "second", "first"]);
    assert_eq!(sent[1].at, sent[0].at, "the second call waited for the first one's pause");
}

#[tokio::test(start_paused = true)]
async fn transient_errors_are_retried_eight_times() {
    let refused = || Reply::lost("connection refused");
    let error = || Reply::error(500, "server_error", "it broke");
    for (reply, status) in [(error(), Some(500)), (refused(), None)] {
        let fake = Fake::always(reply);
        let error = fail(&client(&fake), &model()).await;
        assert_eq!(outline(&error), (ErrorKind::Transient, status, 8));
        assert_eq!(fake.count(), 9);
    }
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_fails_says_why() {
    let fake = Fake::always(Reply::lost("cannot connect to host"));
    let error = fail(&client(&fake), &model()).await;
    assert_eq!(error.to_string(), "cannot connect to host");
}

#[tokio::test(start_paused = true)]
async fn no_retries_means_one_request() {
    let retry = RetryPolicy { max_retries: Some(0), ..RetryPolicy::default() };
    let replies = [
        (Reply::error(500, "server_error", "it broke"), ErrorKind::Transient, Some(500)),
        (Reply::throttled("1"), ErrorKind::RateLimit, Some(429)),
        (Reply::lost("connection refused"), ErrorKind::Transient, None),
    ];
    for (reply, kind, status) in replies {
        let fake = Fake::always(reply);
        let error = fail(&client_with(&fake, retry), &model()).await;
        assert_eq!((outline(&error), fake.count()), ((kind, status, 0), 1));
    }
}

#[tokio::test(start_paused = true)]
async fn throttles_do_not_use_up_the_retries_of_transient_errors() {
    let fake = Fake::new(|number| match number {
        0..10 => Reply::throttled("1"),
        _ => Reply::error(503, "unavailable", "later"),
    });
    let error = fail(&client(&fake), &model()).await;
    assert_eq!(outline(&error), (ErrorKind::Transient, Some(503), 18));
}

#[tokio::test(start_paused = true)]
async fn what_will_not_change_is_asked_once() {
    let table = [
        (401, "invalid_api_key", "Incorrect API key provided.", ErrorKind::Auth),
        (400, "invalid_value", "temperature is too high", ErrorKind::InvalidRequest),
        (400, "context_length_exceeded", "too long", ErrorKind::ContextOverflow),
        (400, "content_filter", "not nice", ErrorKind::ContentFilter),
        (429, "insufficient_quota", "nothing left", ErrorKind::Quota),
    ];
    for (status, code, message, kind) in table {
        // A provider that asks to wait does not make waiting useful.
        let fake = Fake::always(Reply::error(status, code, message).header("retry-after", "1"));
        let error = fail(&client(&fake), &model()).await;
        assert_eq!((outline(&error), fake.count()), ((kind, Some(status), 0), 1), "{code}");
        assert_eq!(error.failure.code.as_deref(), Some(code));
        // Of a quota that is used up more is said than the provider does.
        assert!(error.to_string().contains(message), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_attempt_that_takes_too_long_is_made_again() {
    let slow = [Reply::silence(), Reply::text("half").endless()];
    for reply in slow {
        let fake = Fake::new(move |number| match number {
            0 => reply.clone(),
            _ => Reply::text("quick"),
        });
        let retry = RetryPolicy { attempt_timeout: Some(5 * SECOND), ..RetryPolicy::default() };
        let seen = Mutex::new(Vec::new());
        let note = |retry: &Retry<'_>| seen.lock().unwrap().push(retry.failure.clone());
        let context = CallContext { on_retry: Some(&note), ..CallContext::default() };
        let call = client_with(&fake, retry).call(&model(), ask("hello"), &context).await.unwrap();
        assert_eq!((call.response.text().as_str(), call.retries), ("quick", 1));
        let seen = seen.into_inner().unwrap();
        assert_eq!(seen[0].kind, ErrorKind::Timeout);
        assert_eq!(seen[0].message, "no complete answer within 5 s");
    }
}

#[tokio::test(start_paused = true)]
async fn timeouts_are_bounded_like_other_transient_errors() {
    let fake = Fake::always(Reply::silence());
    let retry = RetryPolicy {
        attempt_timeout: Some(SECOND),
        base: Duration::from_millis(1),
        ..RetryPolicy::default()
    };
    let error = fail(&client_with(&fake, retry), &model()).await;
    assert_eq!((outline(&error), fake.count()), ((ErrorKind::Timeout, None, 8), 9));
}

#[tokio::test(start_paused = true)]
async fn the_deadline_of_the_call_ends_an_attempt() {
    let fake = Fake::always(Reply::silence());
    let retry = RetryPolicy { timeout: 10 * SECOND, ..RetryPolicy::default() };
    let start = Instant::now();
    let error = fail(&client_with(&fake, retry), &model()).await;
    assert_eq!((outline(&error), fake.count()), ((ErrorKind::Timeout, None, 0), 1));
    assert_eq!(error.to_string(), "no complete answer within 10 s");
    assert!((10 * SECOND..10 * SECOND + GRAIN).contains(&start.elapsed()));
}

#[tokio::test(start_paused = true)]
async fn the_deadline_counts_attempts_and_pauses() {
    // Two attempts and a pause take 15 to 16 seconds: the second pause, 5 or more, is too long.
    let fake = Fake::always(Reply::throttled("5").after(5 * SECOND));
    let retry = RetryPolicy { timeout: 20 * SECOND, ..RetryPolicy::default() };
    let start = Instant::now();
    let error = fail(&client_with(&fake, retry), &model()).await;
    assert_eq!(outline(&error), (ErrorKind::RateLimit, Some(429), 1));
    assert!(start.elapsed() < 20 * SECOND, "{:?}", start.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_pause_beyond_the_deadline_is_not_begun() {
    let fake = Fake::always(Reply::throttled("3600"));
    let start = Instant::now();
    let error = fail(&client(&fake), &model()).await;
    assert_eq!(outline(&error), (ErrorKind::RateLimit, Some(429), 0));
    assert_eq!(start.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn waiting_for_a_permit_does_not_count_against_the_deadline() {
    let fake = Fake::always(Reply::text("fine").after(8 * SECOND));
    let retry = RetryPolicy { timeout: 10 * SECOND, ..RetryPolicy::default() };
    let (client, model, context) =
        (client_with(&fake, retry), model_with(1), CallContext::default());
    let calls = join_all((0..5).map(|_| client.call(&model, ask("hello"), &context))).await;
    assert!(calls.iter().all(Result::is_ok), "{calls:?}");
    // Nor is it part of what an answer took.
    assert!(calls.iter().flatten().all(|call| call.latency < 8 * SECOND + GRAIN));
}

/// Cancels a call after a second, and gives its error and when it came.
async fn cancel(client: &Client, model: &Model) -> (CallError, Duration) {
    let context = CallContext::default();
    let start = Instant::now();
    let (result, ()) = tokio::join!(client.call(model, ask("cancelled"), &context), async {
        tokio::time::sleep(SECOND).await;
        context.cancel.cancel();
    });
    (result.unwrap_err(), start.elapsed())
}

#[tokio::test(start_paused = true)]
async fn cancelling_stops_a_call_that_waits_for_a_permit() {
    let fake = Fake::always(Reply::text("fine").after(30 * SECOND));
    let (client, model) = (client(&fake), model_with(1));
    let context = CallContext::default();
    let (first, (error, after)) =
        tokio::join!(client.call(&model, ask("first"), &context), cancel(&client, &model),);
    assert_eq!(outline(&error), (ErrorKind::Cancelled, None, 0));
    assert!(after < SECOND + GRAIN, "{after:?}");
    assert_eq!(first.unwrap().response.text(), "fine");
    assert_eq!(fake.count(), 1);
}

#[tokio::test(start_paused = true)]
async fn cancelling_stops_a_call_in_flight_and_frees_its_permit() {
    let fake = Fake::new(|number| match number {
        0 => Reply::silence(),
        _ => Reply::text("next"),
    });
    let (client, model) = (client(&fake), model_with(1));
    let (error, after) = cancel(&client, &model).await;
    assert_eq!(outline(&error), (ErrorKind::Cancelled, None, 0));
    assert!(after < SECOND + GRAIN, "{after:?}");
    assert_eq!(fake.in_flight(), 0);
    let next = client.call(&model, ask("next"), &CallContext::default()).await.unwrap();
    assert_eq!(next.response.text(), "next");
}

#[tokio::test(start_paused = true)]
async fn cancelling_stops_a_call_that_pauses() {
    let fake = Fake::always(Reply::throttled("60"));
    let (error, after) = cancel(&client(&fake), &model()).await;
    assert_eq!(error.failure.kind, ErrorKind::Cancelled);
    assert!(after < SECOND + GRAIN, "{after:?}");
    assert_eq!(fake.count(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_cancelled_before_it_begins_sends_nothing() {
    let fake = Fake::always(Reply::text("too late"));
    let (client, model, context) = (client(&fake), model(), CallContext::default());
    context.cancel.cancel();
    // More than once, for a choice by chance would often be right.
    for _ in 0..32 {
        let error = client.call(&model, ask("hello"), &context).await.unwrap_err();
        assert_eq!((error.failure.kind, fake.count()), (ErrorKind::Cancelled, 0));
    }
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_call_knows_how_often_it_had_failed() {
    let fake = Fake::new(|number| match number {
        0..3 => Reply::throttled("0"),
        _ => Reply::silence(),
    });
    let retry = RetryPolicy { base: Duration::from_millis(1), ..RetryPolicy::default() };
    let (error, _) = cancel(&client_with(&fake, retry), &model()).await;
    assert_eq!(outline(&error), (ErrorKind::Cancelled, None, 3));
}

#[tokio::test(start_paused = true)]
async fn never_more_in_flight_than_connections() {
    // Some fail and come again, and all take a while until their last byte.
    let fake = Fake::new(|number| match number {
        0..10 => Reply::throttled("1").after(SECOND),
        10..20 => Reply::error(500, "server_error", "it broke").after(SECOND),
        _ => Reply::text("fine").after(3 * SECOND),
    });
    let (client, model, context) = (client(&fake), model_with(7), CallContext::default());
    let calls = join_all((0..100).map(|_| client.call(&model, ask("hello"), &context))).await;
    assert!(calls.iter().all(Result::is_ok));
    assert_eq!((fake.most_in_flight(), fake.in_flight()), (7, 0));
}

#[tokio::test(start_paused = true)]
async fn models_have_pools_of_their_own() {
    let fake = Fake::always(Reply::text("fine").after(SECOND));
    let (client, context) = (client(&fake), CallContext::default());
    let models: Vec<Model> = ["a", "b", "c"]
        .map(|name| resolve(ModelConfig::named("openai", name)))
        .map(|model| model.with_limits(bakeoff_pace::Limits::fixed(1)))
        .into();
    let calls = models.iter().chain(&models);
    join_all(calls.map(|model| client.call(model, ask("hello"), &context))).await;
    assert_eq!(fake.most_in_flight(), 3);
}

#[tokio::test(start_paused = true)]
async fn latency_is_that_of_the_attempt_that_succeeded() {
    let fake = Fake::new(|number| match number {
        0 => Reply::throttled("60").after(9 * SECOND),
        _ => Reply::text("fine").after(3 * SECOND),
    });
    let call = client(&fake).call(&model(), ask("hello"), &CallContext::default()).await.unwrap();
    assert!((3 * SECOND..3 * SECOND + GRAIN).contains(&call.latency), "{:?}", call.latency);
}

#[tokio::test(start_paused = true)]
async fn cost_comes_from_usage_and_prices() {
    let fake = Fake::always(Reply::text("fine"));
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
        let model = resolve(ModelConfig { prices, ..ModelConfig::named("openai", name) });
        let call = client(&fake).call(&model, ask("hello"), &CallContext::default()).await;
        assert_eq!(call.unwrap().cost, cost, "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_stopped_call_makes_no_other_attempt() {
    let stop = CancellationToken::new();
    let stopping = stop.clone();
    let on_retry = move |_: &Retry<'_>| stopping.cancel();
    let fake = Fake::always(Reply::throttled("60"));
    let context =
        CallContext { stop: stop.clone(), on_retry: Some(&on_retry), ..CallContext::default() };
    let error = client(&fake).call(&model(), ask("hello"), &context).await.unwrap_err();
    assert_eq!((error.failure.kind, fake.count()), (ErrorKind::Cancelled, 1));
    let error = client(&fake).call(&model(), ask("hello"), &context).await.unwrap_err();
    assert_eq!((error.failure.kind, fake.count()), (ErrorKind::Cancelled, 1));
}

#[tokio::test]
async fn a_refusal_keeps_its_headers() {
    let fake = Fake::always(Reply::error(400, "x", "y").header("x-ratelimit-limit-requests", "5"));
    let error =
        client(&fake).call(&model(), ask("hello"), &CallContext::default()).await.unwrap_err();
    assert_eq!(error.failure.headers["x-ratelimit-limit-requests"], "5");
}
