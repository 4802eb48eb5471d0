//! What the client keeps, and what it does not ask for again.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may fail")]

mod support;

use bakeoff_core::{ErrorKind, Message, NanoDollars, Request};
use bakeoff_llm::{Cache, CallContext, Client, ClientConfig, Model, ModelConfig, Transport};
use bakeoff_pace::{AdaptiveBounds, Limits};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use support::{Fake, Reply, ask, environment, model, resolve};

/// A cache's file, and the clients that use it one after the other.
struct Shelf {
    folder: tempfile::TempDir,
}

impl Shelf {
    fn new() -> Shelf {
        Shelf { folder: tempfile::tempdir().unwrap() }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("cache.sqlite")
    }

    fn client(&self, scope: &str, fake: &Arc<Fake>) -> Client {
        let transport: Arc<dyn Transport> = fake.clone();
        Client::new(ClientConfig {
            transport: Some(transport),
            cache: Some(Cache::open(&self.path(), scope).unwrap()),
            ..ClientConfig::default()
        })
    }
}

/// Numbers its answers.
fn counting() -> Arc<Fake> {
    Fake::new(|number| Reply::text(&format!("answer {number}")))
}

/// Nobody should ask it.
fn silent() -> Arc<Fake> {
    Fake::always(Reply::error(400, "unexpected", "this should have been in the cache"))
}

fn trial(trial: u32) -> CallContext<'static> {
    CallContext { trial, ..CallContext::default() }
}

/// Numbers its answers, each of which takes a second.
fn slow() -> Arc<Fake> {
    Fake::new(|number| Reply::text(&format!("answer {number}")).after(SECOND))
}

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn the_next_client_finds_the_answer_and_asks_nobody() {
    let shelf = Shelf::new();
    let first = shelf.client("run", &slow());
    let asked = first.call(&model(), ask("hello"), &trial(1)).await.unwrap();
    assert!(!asked.cached);
    drop(first);

    let fake = silent();
    let found = shelf.client("run", &fake).call(&model(), ask("hello"), &trial(1)).await.unwrap();
    assert_eq!(found.response, asked.response);
    assert!(found.cached);
    // It costs nothing, and took what it took then.
    assert_eq!((found.cost, found.latency), (Some(NanoDollars(0)), SECOND));
    assert_eq!(fake.count(), 0);
}

#[tokio::test]
async fn an_answer_from_the_cache_moves_no_window() {
    let shelf = Shelf::new();
    let bounds = AdaptiveBounds { min: 1, start: 1, max: 100 };
    let model = model().with_limits(Limits::adaptive(bounds));
    let ask_ten = async |client: &Client| {
        for number in 1..=10 {
            client.call(&model, ask("hello"), &trial(number)).await.unwrap();
        }
        let pool = client.pool(&model).unwrap();
        (pool.snapshot().answered, pool.limit() > 1)
    };
    let first = shelf.client("run", &counting());
    assert_eq!(ask_ten(&first).await, (10, true));
    drop(first);
    assert_eq!(ask_ten(&shelf.client("run", &silent())).await, (0, false));
}

#[tokio::test]
async fn the_same_request_again_within_a_trial_is_another_sample() {
    let shelf = Shelf::new();
    let ask_three_times = async |client: Client| {
        let context = trial(1);
        let mut texts = Vec::new();
        for _ in 0..3 {
            let call = client.call(&model(), ask("hello"), &context).await.unwrap();
            texts.push(call.response.text());
        }
        texts
    };
    let fake = counting();
    let texts = ask_three_times(shelf.client("run", &fake)).await;
    assert_eq!(
        (texts, fake.count()),
        (["answer 0", "answer 1", "answer 2"].map(Into::into).into(), 3)
    );
    // And each of them is found in its place.
    let texts = ask_three_times(shelf.client("run", &silent())).await;
    assert_eq!(texts, ["answer 0", "answer 1", "answer 2"]);
}

/// A call: its scope, model, request and trial.
type Asked<'a> = (&'a str, Model, Request, u32);

/// Whether the second call finds the answer of the first.
async fn found(first: Asked<'_>, second: Asked<'_>) -> bool {
    let shelf = Shelf::new();
    // An answer in two formats.
    let body = serde_json::json!({
        "choices": support::chat_body("x")["choices"],
        "candidates": [{ "content": { "parts": [{ "text": "x" }] }, "finishReason": "STOP" }],
    });
    let fake = Fake::always(Reply::status(200, body.to_string()));
    let mut cached = Vec::new();
    for (scope, model, request, number) in [first, second] {
        let call = shelf.client(scope, &fake).call(&model, request, &trial(number)).await;
        cached.push(call.unwrap().cached);
    }
    cached == [false, true]
}

#[tokio::test]
async fn another_trial_is_another_answer() {
    let of = |trial| ("run", model(), ask("hello"), trial);
    assert!(found(of(1), of(1)).await);
    assert!(!found(of(1), of(2)).await);
}

#[tokio::test]
async fn another_scope_is_another_answer() {
    let of = |scope| (scope, model(), ask("hello"), 1);
    assert!(!found(of("run"), of("other")).await);
}

#[tokio::test]
async fn a_changed_request_is_another_answer() {
    let of = |request| ("run", model(), request, 1);
    let mut extra = ask("hello");
    extra.extra.insert("top_k".into(), 3.into());
    let mut told = ask("hello");
    told.messages.insert(0, Message::system("be brief"));
    for changed in [
        ask("hello!"),
        told,
        extra,
        Request { temperature: Some(0.5), ..ask("hello") },
        Request { max_tokens: Some(5), ..ask("hello") },
    ] {
        assert!(!found(of(ask("hello")), of(changed.clone())).await, "{changed:?}");
    }
}

#[tokio::test]
async fn another_model_is_another_answer() {
    // Gemini has the model in the address and not in the body.
    for provider in ["openai", "gemini"] {
        let of = |name| ("run", resolve(ModelConfig::named(provider, name)), ask("hello"), 1);
        assert!(found(of("one"), of("one")).await);
        assert!(!found(of("one"), of("other")).await, "{provider}");
    }
}

#[tokio::test]
async fn another_address_header_or_parameter_is_another_answer() {
    let plain = || ModelConfig::named("openai", "the-model");
    let of = |config| ("run", resolve(config), ask("hello"), 1);
    let pair = |name: &str, value: &str| vec![(name.to_owned(), value.to_owned())];
    for changed in [
        ModelConfig { base_url: Some("https://elsewhere.example/v1".into()), ..plain() },
        ModelConfig { headers: pair("x-beta", "1"), ..plain() },
        ModelConfig { query: pair("api-version", "1"), ..plain() },
    ] {
        assert!(!found(of(plain()), of(changed.clone())).await, "{changed:?}");
    }
}

#[tokio::test]
async fn another_key_is_the_same_answer() {
    let config = ModelConfig::named("openai", "the-model");
    let other = Model::resolve(&config, &|_| Some("sk-another-key".into())).unwrap();
    let one = Model::resolve(&config, &environment).unwrap();
    assert!(found(("run", one, ask("hello"), 1), ("run", other, ask("hello"), 1)).await);
}

#[tokio::test]
async fn an_error_is_not_kept() {
    let shelf = Shelf::new();
    let broken = [
        (Reply::error(401, "invalid_api_key", "no"), ErrorKind::Auth),
        (Reply::status(200, "{"), ErrorKind::MalformedResponse),
    ];
    for (reply, kind) in broken {
        let client = shelf.client("run", &Fake::always(reply));
        let error = client.call(&model(), ask("hello"), &trial(1)).await.unwrap_err();
        assert_eq!(error.failure.kind, kind);
    }
    assert_eq!(Cache::stats(&shelf.path()).unwrap().entries, 0);
    let call = shelf.client("run", &counting()).call(&model(), ask("hello"), &trial(1)).await;
    assert!(!call.unwrap().cached);
}

#[tokio::test]
async fn samples_do_not_share_answers() {
    let shelf = Shelf::new();
    let client = shelf.client("run", &counting());
    let mut texts = Vec::new();
    for sample in ["one case", "another case"] {
        let context = CallContext { sample, ..trial(1) };
        let call = client.call(&model(), ask("hello"), &context).await.unwrap();
        texts.push(call.response.text());
    }
    assert_ne!(texts[0], texts[1]);
}

#[tokio::test(start_paused = true)]
async fn equal_calls_at_the_same_time_make_one_request() {
    let shelf = Shelf::new();
    let fake = slow();
    let client = shelf.client("run", &fake);
    let call = async || client.call(&model(), ask("hello"), &trial(1)).await.unwrap();
    let other = async || client.call(&model(), ask("hello"), &trial(2)).await.unwrap();
    let started = tokio::time::Instant::now();
    let (first, second, third, other) = tokio::join!(call(), call(), call(), other());
    assert_eq!((fake.count(), started.elapsed()), (2, SECOND));
    assert_eq!(
        [first.cached, second.cached, third.cached, other.cached],
        [false, true, true, false]
    );
    assert_eq!((&second.response, second.latency), (&first.response, SECOND));
    assert_eq!(third.response, first.response);
    // A moment later, it may not have been written yet.
    assert!(call().await.cached);
    assert_eq!(fake.count(), 2);
}

#[tokio::test(start_paused = true)]
async fn who_waits_for_a_call_that_fails_makes_its_own() {
    let shelf = Shelf::new();
    let fake = Fake::new(|number| match number {
        0 => Reply::error(400, "bad", "no").after(SECOND),
        _ => Reply::text("fine").after(SECOND),
    });
    let client = shelf.client("run", &fake);
    let call = async || client.call(&model(), ask("hello"), &trial(1)).await;
    let (first, second, third) = tokio::join!(call(), call(), call());
    assert!(first.is_err());
    assert_eq!([second.unwrap().cached, third.unwrap().cached], [false, true]);
    assert_eq!(fake.count(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_cancelled_or_dropped_leaves_its_turn_to_the_next() {
    let shelf = Shelf::new();
    let fake = Fake::new(|number| match number {
        0 | 1 => Reply::silence(),
        _ => Reply::text("fine").after(SECOND),
    });
    let client = shelf.client("run", &fake);
    let (model, cancelled) = (model(), trial(1));
    let cancelling = async {
        tokio::time::sleep(SECOND).await;
        cancelled.cancel.cancel();
    };
    let first = client.call(&model, ask("hello"), &cancelled);
    let dropped = async {
        let call = client.call(&model, ask("hello"), &trial(1)).await;
        panic!("nobody answers {call:?}");
    };
    let second = tokio::time::timeout(2 * SECOND, dropped);
    let context = trial(1);
    let third = client.call(&model, ask("hello"), &context);
    let stopped = trial(1);
    let stopping = async {
        tokio::time::sleep(SECOND).await;
        stopped.stop.cancel();
    };
    let fourth = client.call(&model, ask("hello"), &stopped);
    let (first, second, third, fourth, (), ()) =
        tokio::join!(first, second, third, fourth, cancelling, stopping);
    let kind =
        |call: Result<bakeoff_llm::Call, bakeoff_llm::CallError>| call.unwrap_err().failure.kind;
    assert_eq!(kind(first), ErrorKind::Cancelled);
    assert!(second.is_err());
    assert_eq!(third.unwrap().response.text(), "fine");
    assert_eq!(kind(fourth), ErrorKind::Cancelled);
    assert_eq!(fake.count(), 3);
}
