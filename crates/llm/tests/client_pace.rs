//! What the client asks of its pool, and what it tells it, in virtual time.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may fail")]

mod support;

use bakeoff_core::{ErrorKind, Request};
use bakeoff_llm::{
    CallContext, Client, ClientConfig, HttpObserver, Model, ModelConfig, Retry, Transport,
};
use bakeoff_pace::{AdaptiveBounds, Limits, Pools, RunTag, Strategy};
use futures_util::future::join_all;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use support::{Fake, KEY, Reply, ask, client, model, model_with, resolve};
use tokio::time::Instant;

const SECOND: Duration = Duration::from_secs(1);

fn model_of(limits: Limits) -> Model {
    model().with_limits(limits)
}

#[tokio::test(start_paused = true)]
async fn a_used_up_quota_answers_everybody_at_once_and_stops_the_pool() {
    let fake = Fake::new(|number| match number {
        5 => Reply::error(429, "insufficient_quota", "You have nothing left.").after(SECOND),
        _ => Reply::text("fine").after(2 * SECOND),
    });
    let (client, model, context) = (client(&fake), model_with(10), CallContext::default());
    let start = Instant::now();
    let calls = join_all((0..4000).map(|_| client.call(&model, ask("hello"), &context))).await;
    assert!(start.elapsed() < 3 * SECOND, "{:?}", start.elapsed());
    // Those that were in flight are answered, and nothing went out after the one that said so.
    assert_eq!((fake.count(), calls.iter().flatten().count()), (10, 9));
    for error in calls.iter().filter_map(|call| call.as_ref().err()) {
        assert_eq!(error.failure.kind, ErrorKind::Quota);
        let message = error.to_string();
        assert!(message.contains("the quota of the-model is used up"), "{message}");
        assert!(message.contains("(You have nothing left)"), "{message}");
        assert!(message.contains("run again"), "{message}");
    }
    assert!(client.call(&model, ask("later"), &context).await.is_err());
    assert_eq!(fake.count(), 10);
    // Another model has another quota.
    let other = resolve(ModelConfig::named("openai", "another"));
    assert!(client.call(&other, ask("hello"), &context).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn every_form_of_a_used_up_quota_stops_the_pool() {
    let per_day = r#"{"error": {"code": 429, "status": "RESOURCE_EXHAUSTED", "message": "slow", "details": [{"violations": [{"quotaId": "GenerateRequestsPerDayPerProjectPerModel"}]}]}}"#;
    let replies = [
        Reply::error(429, "insufficient_quota", "x"),
        Reply::error(402, "payment", "x"),
        Reply::error(400, "bad", "You have reached your specified API usage limits."),
        Reply::status(429, per_day),
    ];
    for reply in replies {
        let fake = Fake::always(reply);
        let (client, model, context) = (client(&fake), model(), CallContext::default());
        for _ in 0..3 {
            let error = client.call(&model, ask("hello"), &context).await.unwrap_err();
            assert_eq!(error.failure.kind, ErrorKind::Quota, "{error}");
        }
        assert_eq!(fake.count(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_rejected_call_of_reactive_comes_back_when_the_minute_is_over() {
    let fake = Fake::new(|number| match number {
        0 => Reply::throttled("7").after(5 * SECOND),
        _ => Reply::text("fine"),
    });
    let model = model_of(Limits::new(Strategy::Reactive));
    let call = client(&fake).call(&model, ask("hello"), &CallContext::default()).await.unwrap();
    assert_eq!(call.retries, 1);
    let sent = fake.sent();
    let gap = sent[1].at - sent[0].at;
    assert!((60 * SECOND..61 * SECOND).contains(&gap), "{gap:?}");
}

#[tokio::test(start_paused = true)]
async fn a_rejected_call_of_auto_waits_in_the_queue_and_that_is_not_its_time() {
    let fake = Fake::new(|number| match number {
        0 => Reply::throttled("2"),
        _ => Reply::text("fine"),
    });
    let limits = Limits::auto().timeout(3 * SECOND);
    let (pauses, context) = (Mutex::new(Vec::new()), CallContext::default());
    let note = |retry: &Retry<'_>| pauses.lock().unwrap().push(retry.pause);
    let context = CallContext { on_retry: Some(&note), ..context };
    let call = client(&fake).call(&model_of(limits), ask("hello"), &context).await.unwrap();
    assert_eq!(call.retries, 1);
    assert_eq!(*pauses.lock().unwrap(), [Duration::ZERO]);
    let sent = fake.sent();
    let gap = sent[1].at - sent[0].at;
    assert!(gap >= 2 * SECOND, "the announced wait was not kept: {gap:?}");
}

#[tokio::test(start_paused = true)]
async fn a_long_block_loses_no_call_of_auto() {
    let fake = Fake::new(|number| match number {
        0..5 => Reply::throttled("3600"),
        _ => Reply::text("fine"),
    });
    let (client, model) = (client(&fake), model_of(Limits::auto()));
    let (context, start) = (CallContext::default(), Instant::now());
    let calls = join_all((0..20).map(|_| client.call(&model, ask("hello"), &context))).await;
    assert!(calls.iter().all(Result::is_ok), "{calls:?}");
    assert!(start.elapsed() >= 3600 * SECOND, "{:?}", start.elapsed());
}

#[tokio::test(start_paused = true)]
async fn clients_can_share_pools() {
    let fake = Fake::always(Reply::text("fine").after(SECOND));
    let pools = Arc::new(Pools::default());
    let make = || {
        let transport: Option<Arc<dyn Transport>> = Some(fake.clone());
        Client::new(ClientConfig {
            transport,
            pools: Some(Arc::clone(&pools)),
            ..ClientConfig::default()
        })
    };
    let (clients, model, context) = ([make(), make()], model_with(1), CallContext::default());
    join_all(clients.iter().map(|client| client.call(&model, ask("hello"), &context))).await;
    assert_eq!(fake.most_in_flight(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_wait_that_only_the_body_asks_for_reaches_the_pool() {
    let body = r#"{"error": {"code": 429, "status": "RESOURCE_EXHAUSTED", "message": "slow", "details": [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "40s"}]}}"#;
    let fake = Fake::new(move |number| match number {
        0 => Reply::status(429, body),
        _ => Reply::text("fine"),
    });
    let model = model_of(Limits::auto());
    let call = client(&fake).call(&model, ask("hello"), &CallContext::default()).await.unwrap();
    let sent = fake.sent();
    let gap = sent[1].at - sent[0].at;
    assert!(gap >= 40 * SECOND, "{gap:?}");
    assert_eq!(call.retries, 1);
}

#[tokio::test(start_paused = true)]
async fn endings_move_an_adaptive_window_as_they_should() {
    let bounds = AdaptiveBounds { min: 1, start: 4, max: 100 };
    let limit_after = async |replies: [Reply; 4]| {
        let fake = Fake::new(move |number| match replies.get(number) {
            Some(reply) => reply.clone().after(SECOND),
            // The rest is for calls that come back.
            None => Reply::text("fine").after(SECOND),
        });
        let (client, model) = (client(&fake), model_of(Limits::adaptive(bounds).max_retries(1)));
        let context = CallContext::default();
        join_all((0..4).map(|_| client.call(&model, ask("hello"), &context))).await;
        let pool = client.pool(&model).unwrap();
        (pool.limit(), pool.snapshot().rejected, pool.snapshot().failed)
    };
    let fine = || Reply::text("fine");
    let broken = || Reply::error(500, "x", "y");
    // Four clean answers are a round; what fails or is refused is no clean answer.
    assert_eq!(limit_after([fine(), fine(), fine(), fine()]).await, (8, 0, 0));
    assert_eq!(limit_after([fine(), fine(), fine(), broken()]).await, (4, 0, 1));
    assert_eq!(limit_after([fine(), fine(), fine(), Reply::error(400, "x", "y")]).await, (4, 0, 0));
    assert_eq!(limit_after([fine(), fine(), fine(), Reply::throttled("1")]).await, (3, 1, 0));
}

#[tokio::test(start_paused = true)]
async fn tokens_are_estimated_by_the_text_and_by_earlier_answers() {
    // 400 characters are 100 tokens, and an answer is expected to have 200; then it turns out that
    // prompts have 10 and answers 5.
    let fake = Fake::always(Reply::text("fine").after(SECOND));
    let model = model_of(Limits::new(Strategy::Proactive).tpm(320));
    let (context, text) = (CallContext::default(), "abcd".repeat(100));
    let bounded = Request { max_tokens: Some(6), ..ask(&text) };
    let start = Instant::now();
    let other = client(&fake);
    join_all([0; 3].map(|_| other.call(&model, bounded.clone(), &context))).await;
    assert_eq!(start.elapsed().as_secs(), 1, "3 × 106 fit at once");

    let fake = Fake::always(Reply::text("fine").after(SECOND));
    let client = client(&fake);
    let call = |max_tokens| {
        let request = Request { max_tokens, ..ask(&text) };
        client.call(&model, request, &context)
    };
    let seconds = |fake: &Fake| {
        let sent = fake.sent();
        sent.iter().map(|one| (one.at - sent[0].at).as_secs()).collect::<Vec<_>>()
    };
    // 300 + 300 is too much, 15 + 105 + 105 is not, and 15 + 105 + 105 + 105 is.
    join_all([call(None), call(None)]).await;
    assert_eq!(seconds(&fake), [0, 1]);
    join_all([call(Some(9000)), call(None), call(Some(1)), call(None)]).await;
    assert_eq!(seconds(&fake), [0, 1, 2, 2, 3, 3]);
}

#[tokio::test(start_paused = true)]
async fn runs_on_one_pool_take_turns() {
    let fake = Fake::always(Reply::text("fine").after(SECOND));
    let (client, model) = (client(&fake), model_with(1));
    let runs = [(1, "a"), (1, "b"), (1, "c"), (2, "x"), (2, "y")];
    join_all(runs.map(|(run, text)| {
        let (client, model) = (&client, &model);
        async move {
            let context = CallContext { run: RunTag(run), ..CallContext::default() };
            client.call(model, ask(text), &context).await.unwrap();
        }
    }))
    .await;
    let order: Vec<String> = fake.sent().iter().map(support::Sent::prompt).collect();
    assert_eq!(order, ["a", "b", "x", "c", "y"]);
}

#[tokio::test(start_paused = true)]
async fn a_models_limits_win_over_the_clients_policy() {
    let fake = Fake::always(Reply::error(500, "x", "y"));
    let model = model_of(Limits::fixed(1).max_retries(2));
    let error = client(&fake).call(&model, ask("hello"), &CallContext::default()).await;
    assert_eq!((error.unwrap_err().retries, fake.count()), (2, 3));
    let fake = Fake::always(Reply::silence());
    let model = model_of(Limits::fixed(1).timeout(5 * SECOND));
    let start = Instant::now();
    let error = client(&fake).call(&model, ask("hello"), &CallContext::default()).await;
    assert_eq!(error.unwrap_err().failure.kind, ErrorKind::Timeout);
    assert_eq!(start.elapsed().as_secs(), 5);
}

/// Everything that an observer was told, as text.
fn observed(fake: &Arc<Fake>) -> (Client, Arc<Mutex<Vec<String>>>) {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let told = Arc::clone(&seen);
    let on_http = HttpObserver::new(move |record| {
        told.lock().unwrap().push(format!(
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
    let config = ClientConfig {
        transport: Some(fake.clone()),
        on_http: Some(on_http),
        ..ClientConfig::default()
    };
    (Client::new(config), seen)
}

#[tokio::test(start_paused = true)]
async fn every_attempt_is_recorded_without_secrets() {
    let fake = Fake::new(|number| match number {
        0 => Reply::error(429, "rate_limit_exceeded", "slow").after(SECOND),
        1 => Reply::lost("cannot connect"),
        _ => Reply::text("fine").after(3 * SECOND),
    });
    let (client, seen) = observed(&fake);
    let model = resolve(ModelConfig {
        query: vec![("key".to_owned(), KEY.to_owned())],
        ..ModelConfig::named("openai", "the-model")
    });
    let model = model.with_limits(Limits::auto());
    client.call(&model, ask("hello"), &CallContext::default()).await.unwrap();
    let seen = seen.lock().unwrap();
    assert_eq!(seen.len(), 3, "{seen:?}");
    let url = "the-model POST https://api.openai.com/v1/chat/completions";
    assert_eq!(
        seen[0],
        format!(
            "{url} Some(429) Some(RateLimit) 1 s, 1 in flight, #1, \
             Some((\"rate_limit_exceeded\", 0ns))"
        )
    );
    assert!(seen[1].starts_with(&format!("{url} None Some(Transient) 0 s, 1 in flight, #2, Some")));
    assert_eq!(seen[2], format!("{url} Some(200) None 3 s, 1 in flight, #3, None"));
    assert!(!seen.concat().contains(KEY));
}

#[tokio::test(start_paused = true)]
async fn an_attempt_that_is_cancelled_is_recorded_too() {
    let fake = Fake::always(Reply::silence());
    let (client, seen) = observed(&fake);
    let (model, context) = (model(), CallContext::default());
    let (result, ()) = tokio::join!(client.call(&model, ask("hello"), &context), async {
        tokio::time::sleep(2 * SECOND).await;
        context.cancel.cancel();
    });
    assert!(result.is_err());
    let seen = seen.lock().unwrap();
    assert_eq!(seen.len(), 1);
    assert!(seen[0].contains("None Some(Cancelled) 2 s, 1 in flight, #1, None"), "{seen:?}");
}
