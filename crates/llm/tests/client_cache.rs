//! Response cache of the client.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests may panic")]

mod support;

use bakeoff_core::{ErrorKind, Message, NanoDollars, Request};
use bakeoff_llm::{Cache, CallContext, Client, ClientConfig, Model, ModelConfig, Transport};
use bakeoff_pace::{AdaptiveBounds, Limits};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use support::{FakeServer, Reply, environment, model, prompt, resolve};

/// Directory of a cache file that several clients use.
struct CacheDirectory {
    folder: tempfile::TempDir,
}

impl CacheDirectory {
    fn new() -> CacheDirectory {
        CacheDirectory { folder: tempfile::tempdir().unwrap() }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("cache.sqlite")
    }

    fn client(&self, scope: &str, server: &Arc<FakeServer>) -> Client {
        let transport: Arc<dyn Transport> = server.clone();
        let cache = Cache::open(&self.path(), scope).unwrap();
        Client::new(ClientConfig::default().transport(transport).cache(cache))
    }
}

/// Creates a server that numbers its responses.
fn counting_server() -> Arc<FakeServer> {
    FakeServer::new(|number| Reply::text(&format!("response {number}")))
}

/// Creates a server that must not be called.
fn unused_server() -> Arc<FakeServer> {
    FakeServer::always(Reply::error(400, "unexpected", "this should have been in the cache"))
}

fn trial(trial: u32) -> CallContext<'static> {
    CallContext::default().trial(trial)
}

/// Creates a server that numbers its responses and takes a second for each.
fn slow_server() -> Arc<FakeServer> {
    FakeServer::new(|number| Reply::text(&format!("response {number}")).after(SECOND))
}

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn next_client_returns_the_cached_response_without_a_request() {
    let directory = CacheDirectory::new();
    let first = directory.client("run", &slow_server());
    let original = first.call(&model(), prompt("hello"), &trial(1)).await.unwrap();
    assert!(!original.cached);
    drop(first);

    let server = unused_server();
    let found =
        directory.client("run", &server).call(&model(), prompt("hello"), &trial(1)).await.unwrap();
    assert_eq!(found.response, original.response);
    assert!(found.cached);
    // It is free and has the latency of the original request.
    assert_eq!((found.cost, found.latency), (Some(NanoDollars(0)), SECOND));
    assert_eq!(server.count(), 0);
}

#[tokio::test]
async fn cached_response_does_not_change_the_adaptive_window() {
    let directory = CacheDirectory::new();
    let bounds = AdaptiveBounds { min: 1, start: 1, max: 100 };
    let model = model().with_limits(Limits::adaptive(bounds));
    let call_ten_times = async |client: &Client| {
        for number in 1..=10 {
            client.call(&model, prompt("hello"), &trial(number)).await.unwrap();
        }
        let pool = client.pool(&model).unwrap();
        (pool.snapshot().answered, pool.limit() > 1)
    };
    let first = directory.client("run", &counting_server());
    assert_eq!(call_ten_times(&first).await, (10, true));
    drop(first);
    assert_eq!(call_ten_times(&directory.client("run", &unused_server())).await, (0, false));
}

#[tokio::test]
async fn repeated_request_within_a_trial_is_a_separate_sample() {
    let directory = CacheDirectory::new();
    let call_three_times = async |client: Client| {
        let context = trial(1);
        let mut texts = Vec::new();
        for _ in 0..3 {
            let call = client.call(&model(), prompt("hello"), &context).await.unwrap();
            texts.push(call.response.text());
        }
        texts
    };
    let server = counting_server();
    let texts = call_three_times(directory.client("run", &server)).await;
    assert_eq!(
        (texts, server.count()),
        (["response 0", "response 1", "response 2"].map(Into::into).into(), 3)
    );
    // Each of them is cached under its ordinal.
    let texts = call_three_times(directory.client("run", &unused_server())).await;
    assert_eq!(texts, ["response 0", "response 1", "response 2"]);
}

/// Scope, model, request and trial of a call.
type CallInput<'a> = (&'a str, Model, Request, u32);

/// Whether the second call returns the cached response of the first.
async fn is_shared(first: CallInput<'_>, second: CallInput<'_>) -> bool {
    let directory = CacheDirectory::new();
    // A response that is valid in two formats.
    let body = serde_json::json!({
        "choices": support::chat_body("x")["choices"],
        "candidates": [{ "content": { "parts": [{ "text": "x" }] }, "finishReason": "STOP" }],
    });
    let server = FakeServer::always(Reply::status(200, body.to_string()));
    let mut cached = Vec::new();
    for (scope, model, request, number) in [first, second] {
        let call = directory.client(scope, &server).call(&model, request, &trial(number)).await;
        cached.push(call.unwrap().cached);
    }
    cached == [false, true]
}

#[tokio::test]
async fn trial_is_part_of_the_cache_key() {
    let of = |trial| ("run", model(), prompt("hello"), trial);
    assert!(is_shared(of(1), of(1)).await);
    assert!(!is_shared(of(1), of(2)).await);
}

#[tokio::test]
async fn scope_is_part_of_the_cache_key() {
    let of = |scope| (scope, model(), prompt("hello"), 1);
    assert!(!is_shared(of("run"), of("other")).await);
}

#[tokio::test]
async fn request_is_part_of_the_cache_key() {
    let of = |request| ("run", model(), request, 1);
    let mut extra = prompt("hello");
    extra.extra.insert("top_k".into(), 3.into());
    let mut with_system = prompt("hello");
    with_system.messages.insert(0, Message::system("be brief"));
    for changed in [
        prompt("hello!"),
        with_system,
        extra,
        Request { temperature: Some(0.5), ..prompt("hello") },
        Request { max_tokens: Some(5), ..prompt("hello") },
    ] {
        assert!(!is_shared(of(prompt("hello")), of(changed.clone())).await, "{changed:?}");
    }
}

#[tokio::test]
async fn model_is_part_of_the_cache_key() {
    // Gemini names the model in the URL and not in the body.
    for provider in ["openai", "gemini"] {
        let of = |name| ("run", resolve(ModelConfig::named(provider, name)), prompt("hello"), 1);
        assert!(is_shared(of("one"), of("one")).await);
        assert!(!is_shared(of("one"), of("other")).await, "{provider}");
    }
}

#[tokio::test]
async fn url_headers_and_query_are_part_of_the_cache_key() {
    let plain = || ModelConfig::named("openai", "the-model");
    let of = |config| ("run", resolve(config), prompt("hello"), 1);
    for changed in [
        plain().base_url("https://elsewhere.example/v1"),
        plain().header("x-beta", "1"),
        plain().query("api-version", "1"),
    ] {
        assert!(!is_shared(of(plain()), of(changed.clone())).await, "{changed:?}");
    }
}

#[tokio::test]
async fn api_key_is_not_part_of_the_cache_key() {
    let config = ModelConfig::named("openai", "the-model");
    let other = Model::resolve(&config, &|_| Some("sk-another-key".into())).unwrap();
    let one = Model::resolve(&config, &environment).unwrap();
    assert!(is_shared(("run", one, prompt("hello"), 1), ("run", other, prompt("hello"), 1)).await);
}

#[tokio::test]
async fn errors_are_not_cached() {
    let directory = CacheDirectory::new();
    let broken = [
        (Reply::error(401, "invalid_api_key", "no"), ErrorKind::Auth),
        (Reply::status(200, "{"), ErrorKind::MalformedResponse),
    ];
    for (reply, kind) in broken {
        let client = directory.client("run", &FakeServer::always(reply));
        let error = client.call(&model(), prompt("hello"), &trial(1)).await.unwrap_err();
        assert_eq!(error.failure.kind, kind);
    }
    assert_eq!(Cache::stats(&directory.path()).unwrap().entries, 0);
    let call = directory
        .client("run", &counting_server())
        .call(&model(), prompt("hello"), &trial(1))
        .await;
    assert!(!call.unwrap().cached);
}

#[tokio::test]
async fn samples_do_not_share_responses() {
    let directory = CacheDirectory::new();
    let client = directory.client("run", &counting_server());
    let mut texts = Vec::new();
    for sample in ["one case", "another case"] {
        let context = trial(1).sample(sample);
        let call = client.call(&model(), prompt("hello"), &context).await.unwrap();
        texts.push(call.response.text());
    }
    assert_ne!(texts[0], texts[1]);
}

#[tokio::test(start_paused = true)]
async fn concurrent_equal_calls_make_one_request() {
    let directory = CacheDirectory::new();
    let server = slow_server();
    let client = directory.client("run", &server);
    let call = async || client.call(&model(), prompt("hello"), &trial(1)).await.unwrap();
    let other = async || client.call(&model(), prompt("hello"), &trial(2)).await.unwrap();
    let started = tokio::time::Instant::now();
    let (first, second, third, other) = tokio::join!(call(), call(), call(), other());
    assert_eq!((server.count(), started.elapsed()), (2, SECOND));
    assert_eq!(
        [first.cached, second.cached, third.cached, other.cached],
        [false, true, true, false]
    );
    assert_eq!((&second.response, second.latency), (&first.response, SECOND));
    assert_eq!(third.response, first.response);
    // The entry may not have been written yet.
    assert!(call().await.cached);
    assert_eq!(server.count(), 2);
}

#[tokio::test(start_paused = true)]
async fn call_that_waited_for_a_failed_one_sends_its_own_request() {
    let directory = CacheDirectory::new();
    let server = FakeServer::new(|number| match number {
        0 => Reply::error(400, "bad", "no").after(SECOND),
        _ => Reply::text("fine").after(SECOND),
    });
    let client = directory.client("run", &server);
    let call = async || client.call(&model(), prompt("hello"), &trial(1)).await;
    let (first, second, third) = tokio::join!(call(), call(), call());
    assert!(first.is_err());
    assert_eq!([second.unwrap().cached, third.unwrap().cached], [false, true]);
    assert_eq!(server.count(), 2);
}

#[tokio::test(start_paused = true)]
async fn cancelled_or_dropped_call_admits_the_next() {
    let directory = CacheDirectory::new();
    let server = FakeServer::new(|number| match number {
        0 | 1 => Reply::no_response(),
        _ => Reply::text("fine").after(SECOND),
    });
    let client = directory.client("run", &server);
    let (model, cancelled) = (model(), trial(1));
    let cancelling = async {
        tokio::time::sleep(SECOND).await;
        cancelled.cancel.cancel();
    };
    let first = client.call(&model, prompt("hello"), &cancelled);
    let dropped = async {
        let call = client.call(&model, prompt("hello"), &trial(1)).await;
        panic!("unexpected response {call:?}");
    };
    let second = tokio::time::timeout(2 * SECOND, dropped);
    let context = trial(1);
    let third = client.call(&model, prompt("hello"), &context);
    let stopped = trial(1);
    let stopping = async {
        tokio::time::sleep(SECOND).await;
        stopped.stop.cancel();
    };
    let fourth = client.call(&model, prompt("hello"), &stopped);
    let (first, second, third, fourth, (), ()) =
        tokio::join!(first, second, third, fourth, cancelling, stopping);
    let kind =
        |call: Result<bakeoff_llm::Call, bakeoff_llm::CallError>| call.unwrap_err().failure.kind;
    assert_eq!(kind(first), ErrorKind::Cancelled);
    assert!(second.is_err());
    assert_eq!(third.unwrap().response.text(), "fine");
    assert_eq!(kind(fourth), ErrorKind::Cancelled);
    assert_eq!(server.count(), 3);
}
