//! Interaction of the client with its pools, in virtual time.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests may panic")]

mod support;

use bakeoff_core::{ErrorKind, Request};
use bakeoff_llm::{
    CallContext, Client, ClientConfig, HttpObserver, Model, ModelConfig, Retry, Transport,
};
use bakeoff_pace::{AdaptiveBounds, Limits, Pools, RetryAfter, RunTag, Strategy};
use futures_util::future::join_all;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use support::{FakeServer, KEY, Reply, client, model, model_with_connections, prompt, resolve};
use tokio::time::Instant;

const SECOND: Duration = Duration::from_secs(1);

fn model_with_limits(limits: Limits) -> Model {
    model().with_limits(limits)
}

#[tokio::test(start_paused = true)]
async fn exhausted_quota_fails_all_waiting_calls_and_stops_the_pool() {
    let server = FakeServer::new(|number| match number {
        5 => Reply::error(429, "insufficient_quota", "Quota exceeded.").after(SECOND),
        _ => Reply::text("fine").after(2 * SECOND),
    });
    let (client, model, context) =
        (client(&server), model_with_connections(10), CallContext::default());
    let start = Instant::now();
    let calls = join_all((0..4000).map(|_| client.call(&model, prompt("hello"), &context))).await;
    assert!(start.elapsed() < 3 * SECOND, "{:?}", start.elapsed());
    // Requests in flight still succeed, and no request is sent after the quota error.
    assert_eq!((server.count(), calls.iter().flatten().count()), (10, 9));
    for error in calls.iter().filter_map(|call| call.as_ref().err()) {
        assert_eq!(error.failure.kind, ErrorKind::Quota);
        let message = error.to_string();
        assert!(message.contains("quota exhausted for the-model"), "{message}");
        assert!(message.contains("(Quota exceeded)"), "{message}");
        assert!(message.contains("run again"), "{message}");
    }
    assert!(client.call(&model, prompt("later"), &context).await.is_err());
    assert_eq!(server.count(), 10);
    // Another model has its own quota.
    let other = resolve(ModelConfig::named("openai", "another"));
    assert!(client.call(&other, prompt("hello"), &context).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn every_quota_error_stops_the_pool() {
    let per_day = r#"{"error": {"code": 429, "status": "RESOURCE_EXHAUSTED", "message": "slow", "details": [{"violations": [{"quotaId": "GenerateRequestsPerDayPerProjectPerModel"}]}]}}"#;
    let replies = [
        Reply::error(429, "insufficient_quota", "x"),
        Reply::error(402, "payment", "x"),
        Reply::error(400, "bad", "You have reached your specified API usage limits."),
        Reply::status(429, per_day),
    ];
    for reply in replies {
        let server = FakeServer::always(reply);
        let (client, model, context) = (client(&server), model(), CallContext::default());
        for _ in 0..3 {
            let error = client.call(&model, prompt("hello"), &context).await.unwrap_err();
            assert_eq!(error.failure.kind, ErrorKind::Quota, "{error}");
        }
        assert_eq!(server.count(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn reactive_strategy_retries_after_the_minute() {
    let server = FakeServer::new(|number| match number {
        0 => Reply::throttled("7").after(5 * SECOND),
        _ => Reply::text("fine"),
    });
    let model = model_with_limits(Limits::new(Strategy::Reactive));
    let call =
        client(&server).call(&model, prompt("hello"), &CallContext::default()).await.unwrap();
    assert_eq!(call.retries, 1);
    let sent = server.sent();
    let gap = sent[1].at - sent[0].at;
    assert!((62 * SECOND..63 * SECOND).contains(&gap), "{gap:?}");
}

#[tokio::test(start_paused = true)]
async fn auto_strategy_retries_from_the_queue_without_using_the_timeout() {
    let server = FakeServer::new(|number| match number {
        0 => Reply::throttled("2"),
        _ => Reply::text("fine"),
    });
    let limits = Limits::auto().timeout(3 * SECOND).retry_after(RetryAfter::Strict);
    let (pauses, context) = (Mutex::new(Vec::new()), CallContext::default());
    let note = |retry: &Retry<'_>| pauses.lock().unwrap().push(retry.pause);
    let context = context.on_retry(&note);
    let call =
        client(&server).call(&model_with_limits(limits), prompt("hello"), &context).await.unwrap();
    assert_eq!(call.retries, 1);
    assert_eq!(*pauses.lock().unwrap(), [Duration::ZERO]);
    let sent = server.sent();
    let gap = sent[1].at - sent[0].at;
    assert!(gap >= 2 * SECOND, "retried before retry-after: {gap:?}");
}

#[tokio::test(start_paused = true)]
async fn auto_strategy_survives_a_long_block() {
    let server = FakeServer::new(|number| match number {
        0..5 => Reply::throttled("100"),
        _ => Reply::text("fine"),
    });
    let (client, model) = (client(&server), model_with_limits(Limits::auto()));
    let (context, start) = (CallContext::default(), Instant::now());
    let calls = join_all((0..20).map(|_| client.call(&model, prompt("hello"), &context))).await;
    assert!(calls.iter().all(Result::is_ok), "{calls:?}");
    assert!(start.elapsed() >= 100 * SECOND, "{:?}", start.elapsed());
}

#[tokio::test(start_paused = true)]
async fn clients_can_share_pools() {
    let server = FakeServer::always(Reply::text("fine").after(SECOND));
    let pools = Arc::new(Pools::default());
    let new_client = || {
        let transport: Arc<dyn Transport> = server.clone();
        Client::new(ClientConfig::default().transport(transport).pools(Arc::clone(&pools)))
    };
    let (clients, model, context) =
        ([new_client(), new_client()], model_with_connections(1), CallContext::default());
    join_all(clients.iter().map(|client| client.call(&model, prompt("hello"), &context))).await;
    assert_eq!(server.max_in_flight(), 1);
}

#[tokio::test(start_paused = true)]
async fn wait_from_the_body_reaches_the_pool() {
    let body = r#"{"error": {"code": 429, "status": "RESOURCE_EXHAUSTED", "message": "slow", "details": [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "40s"}]}}"#;
    let server = FakeServer::new(move |number| match number {
        0 => Reply::status(429, body),
        _ => Reply::text("fine"),
    });
    let model = model_with_limits(Limits::auto().retry_after(RetryAfter::Strict));
    let call =
        client(&server).call(&model, prompt("hello"), &CallContext::default()).await.unwrap();
    let sent = server.sent();
    let gap = sent[1].at - sent[0].at;
    assert!(gap >= 40 * SECOND, "{gap:?}");
    assert_eq!(call.retries, 1);
}

#[tokio::test(start_paused = true)]
async fn request_outcomes_change_the_adaptive_window() {
    let bounds = AdaptiveBounds { min: 1, start: 4, max: 100 };
    let limit_after = async |replies: [Reply; 4]| {
        let server = FakeServer::new(move |number| match replies.get(number) {
            Some(reply) => reply.clone().after(SECOND),
            // Further requests are retries.
            None => Reply::text("fine").after(SECOND),
        });
        let (client, model) =
            (client(&server), model_with_limits(Limits::adaptive(bounds).max_retries(1)));
        let context = CallContext::default();
        join_all((0..4).map(|_| client.call(&model, prompt("hello"), &context))).await;
        let pool = client.pool(&model).unwrap();
        (pool.limit(), pool.snapshot().rejected, pool.snapshot().failed)
    };
    let fine = || Reply::text("fine");
    let broken = || Reply::error(500, "x", "y");
    // Four clean responses are a round; a failed or invalid request is not a clean response.
    assert_eq!(limit_after([fine(), fine(), fine(), fine()]).await, (8, 0, 0));
    assert_eq!(limit_after([fine(), fine(), fine(), broken()]).await, (4, 0, 1));
    assert_eq!(limit_after([fine(), fine(), fine(), Reply::error(400, "x", "y")]).await, (4, 0, 0));
    assert_eq!(limit_after([fine(), fine(), fine(), Reply::throttled("1")]).await, (3, 1, 0));
}

#[tokio::test(start_paused = true)]
async fn tokens_are_estimated_from_text_and_earlier_responses() {
    // 400 characters count as 100 tokens, and 200 output tokens are expected. The responses then report 10
    // input and 5 output tokens.
    let server = FakeServer::always(Reply::text("fine").after(SECOND));
    let model = model_with_limits(Limits::new(Strategy::Proactive).tpm(320));
    let (context, text) = (CallContext::default(), "abcd".repeat(100));
    let bounded = Request { max_tokens: Some(6), ..prompt(&text) };
    let start = Instant::now();
    let other = client(&server);
    join_all([0; 3].map(|_| other.call(&model, bounded.clone(), &context))).await;
    assert_eq!(start.elapsed().as_secs(), 1, "3 × 106 fit at once");

    let server = FakeServer::always(Reply::text("fine").after(SECOND));
    let client = client(&server);
    let call = |max_tokens| {
        let request = Request { max_tokens, ..prompt(&text) };
        client.call(&model, request, &context)
    };
    let seconds = |server: &FakeServer| {
        let sent = server.sent();
        sent.iter().map(|one| (one.at - sent[0].at).as_secs()).collect::<Vec<_>>()
    };
    // 300 + 300 exceeds the limit, 15 + 105 + 105 does not, and 15 + 105 + 105 + 105 does.
    join_all([call(None), call(None)]).await;
    assert_eq!(seconds(&server), [0, 1]);
    join_all([call(Some(9000)), call(None), call(Some(1)), call(None)]).await;
    assert_eq!(seconds(&server), [0, 1, 2, 2, 3, 3]);
}

#[tokio::test(start_paused = true)]
async fn pool_serves_runs_in_turn() {
    let server = FakeServer::always(Reply::text("fine").after(SECOND));
    let (client, model) = (client(&server), model_with_connections(1));
    let runs = [(1, "a"), (1, "b"), (1, "c"), (2, "x"), (2, "y")];
    join_all(runs.map(|(run, text)| {
        let (client, model) = (&client, &model);
        async move {
            let context = CallContext::default().run(RunTag(run));
            client.call(model, prompt(text), &context).await.unwrap();
        }
    }))
    .await;
    let order: Vec<String> = server.sent().iter().map(support::SentRequest::user_text).collect();
    assert_eq!(order, ["a", "b", "x", "c", "y"]);
}

#[tokio::test(start_paused = true)]
async fn model_limits_override_the_client_policy() {
    let server = FakeServer::always(Reply::error(500, "x", "y"));
    let model = model_with_limits(Limits::fixed(1).max_retries(2));
    let error = client(&server).call(&model, prompt("hello"), &CallContext::default()).await;
    assert_eq!((error.unwrap_err().retries, server.count()), (2, 3));
    let server = FakeServer::always(Reply::no_response());
    let model = model_with_limits(Limits::fixed(1).timeout(5 * SECOND));
    let start = Instant::now();
    let error = client(&server).call(&model, prompt("hello"), &CallContext::default()).await;
    assert_eq!(error.unwrap_err().failure.kind, ErrorKind::Timeout);
    assert_eq!(start.elapsed().as_secs(), 5);
}

/// Creates a client whose HTTP records are collected as text.
fn observed_client(server: &Arc<FakeServer>) -> (Client, Arc<Mutex<Vec<String>>>) {
    let records = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&records);
    let on_http = HttpObserver::new(move |record| {
        log.lock().unwrap().push(format!(
            "{} {} {} {:?} {:?} {} s, {} in flight, #{}, {:?}",
            record.model,
            record.method,
            record.url,
            record.status,
            record.error,
            record.latency.as_secs(),
            record.in_flight,
            record.attempt,
            record.retry.map(|retry| (retry.code.unwrap_or_default().to_owned(), retry.pause)),
        ));
        assert!(record.request_bytes > 20);
        assert_eq!(record.response_bytes > 0, record.status.is_some(), "{record:?}");
    });
    let config = ClientConfig::default().transport(server.clone()).on_http(on_http);
    (Client::new(config), records)
}

#[tokio::test(start_paused = true)]
async fn every_request_is_recorded_without_secrets() {
    let server = FakeServer::new(|number| match number {
        0 => Reply::error(429, "rate_limit_exceeded", "slow").after(SECOND),
        1 => Reply::connection_error("cannot connect"),
        _ => Reply::text("fine").after(3 * SECOND),
    });
    let (client, records) = observed_client(&server);
    let model = resolve(ModelConfig::named("openai", "the-model").query("key", KEY));
    let model = model.with_limits(Limits::auto());
    client.call(&model, prompt("hello"), &CallContext::default()).await.unwrap();
    let records = records.lock().unwrap();
    assert_eq!(records.len(), 3, "{records:?}");
    let url = "the-model POST https://api.openai.com/v1/chat/completions";
    assert_eq!(
        records[0],
        format!(
            "{url} Some(429) Some(RateLimit) 1 s, 1 in flight, #1, \
             Some((\"rate_limit_exceeded\", 0ns))"
        )
    );
    assert!(
        records[1].starts_with(&format!("{url} None Some(Transient) 0 s, 1 in flight, #2, Some"))
    );
    assert_eq!(records[2], format!("{url} Some(200) None 3 s, 1 in flight, #3, None"));
    assert!(!records.concat().contains(KEY));
}

#[tokio::test(start_paused = true)]
async fn cancelled_request_is_recorded() {
    let server = FakeServer::always(Reply::no_response());
    let (client, records) = observed_client(&server);
    let (model, context) = (model(), CallContext::default());
    let (result, ()) = tokio::join!(client.call(&model, prompt("hello"), &context), async {
        tokio::time::sleep(2 * SECOND).await;
        context.cancel.cancel();
    });
    assert!(result.is_err());
    let records = records.lock().unwrap();
    assert_eq!(records.len(), 1);
    assert!(records[0].contains("None Some(Cancelled) 2 s, 1 in flight, #1, None"), "{records:?}");
}
