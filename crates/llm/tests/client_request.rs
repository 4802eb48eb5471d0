//! What the client sends, and what it never shows.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may fail")]

mod support;

use bakeoff_core::{ErrorKind, Redactor, Request};
use bakeoff_llm::{CallContext, Client, ClientConfig, Model, ModelConfig, Retry, Transport};
use bakeoff_pace::RetryPolicy;
use serde_json::json;
use std::sync::{Arc, Mutex};
use support::{Fake, KEY, Reply, Sent, ask, client, model, resolve};

fn pair(name: &str, value: &str) -> Vec<(String, String)> {
    vec![(name.to_owned(), value.to_owned())]
}

/// What is sent to this model.
async fn sent_to(config: ModelConfig, request: Request, context: &CallContext<'_>) -> Sent {
    let fake = Fake::always(Reply::error(400, "invalid", "never mind"));
    client(&fake).call(&resolve(config), request, context).await.unwrap_err();
    fake.sent().remove(0)
}

#[tokio::test]
async fn the_key_travels_in_its_header_and_shows_nowhere() {
    let azure = ModelConfig {
        base_url: Some("https://me.example/openai/v1".into()),
        ..ModelConfig::named("azure", "the-model")
    };
    let bearer = format!("Bearer {KEY}");
    for (config, name, value) in [
        (ModelConfig::named("openai", "the-model"), "authorization", bearer.as_str()),
        (ModelConfig::named("openai-responses", "the-model"), "authorization", &bearer),
        (ModelConfig::named("anthropic", "the-model"), "x-api-key", KEY),
        (ModelConfig::named("gemini", "the-model"), "x-goog-api-key", KEY),
        (azure, "api-key", KEY),
    ] {
        let fake = Fake::always(Reply::error(400, "invalid", "never mind"));
        let (client, model) = (client(&fake), resolve(config));
        let error = client.call(&model, ask("hello"), &CallContext::default()).await.unwrap_err();
        let sent = fake.sent().remove(0);
        assert_eq!(sent.header(name), Some(value));
        let carriers = sent.request.headers.values();
        let carriers = carriers.filter(|value| value.to_str().unwrap().contains(KEY)).count();
        assert_eq!(carriers, 1, "the key is in more headers than {name}");
        // The address and the body are part of what the request shows.
        let shown = format!("{:?} {model:?} {client:?} {error:?} {error}", sent.request);
        assert!(!shown.contains(KEY), "{shown}");
    }
}

/// A client that knows the model's key.
fn discreet(fake: &Arc<Fake>, model: &Model) -> Client {
    let mut redactor = Redactor::default();
    model.add_secrets(&mut redactor);
    let transport: Arc<dyn Transport> = fake.clone();
    let retry = RetryPolicy { max_retries: Some(1), ..RetryPolicy::default() };
    let transport = Some(transport);
    Client::new(ClientConfig { transport, redactor, retry, ..ClientConfig::default() })
}

#[tokio::test(start_paused = true)]
async fn an_echo_of_the_key_is_taken_out_of_errors() {
    let message = format!("the key {KEY} is wrong");
    let replies = [
        Reply::error(401, "invalid_api_key", &message),
        Reply::error(401, KEY, &message),
        Reply::status(500, message.clone()),
        Reply::status(200, message.clone()),
        Reply::status(200, json!({ "error": { "code": KEY, "message": message } }).to_string()),
        Reply::events(format!("data: {message}\n\n")),
        Reply::lost(&message),
    ];
    for reply in replies {
        let (fake, model) = (Fake::always(reply.clone()), model());
        let seen = Mutex::new(String::new());
        let note = |retry: &Retry<'_>| *seen.lock().unwrap() = format!("{retry:?}");
        let context = CallContext { on_retry: Some(&note), ..CallContext::default() };
        let error = discreet(&fake, &model).call(&model, ask("x"), &context).await.unwrap_err();
        let shown = format!("{error:?} {}", seen.into_inner().unwrap());
        assert!(shown.contains("the key [redacted] is wrong"), "{shown}");
        assert!(!shown.contains(KEY), "{shown}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_long_error_is_not_cut_in_the_middle_of_the_key() {
    // Messages end after 500 characters, and bodies that are no JSON after 200.
    let long = |start: usize| format!("{}{KEY} and more", "-".repeat(start - KEY.len() / 2));
    for (reply, kind) in [
        (Reply::error(401, "invalid_api_key", &long(500)), ErrorKind::Auth),
        (Reply::status(401, long(200)), ErrorKind::Auth),
        (Reply::status(200, long(200)), ErrorKind::MalformedResponse),
    ] {
        let (fake, model) = (Fake::always(reply), model());
        let context = CallContext::default();
        let error = discreet(&fake, &model).call(&model, ask("x"), &context).await.unwrap_err();
        assert_eq!(error.failure.kind, kind);
        assert!(!error.to_string().contains(&KEY[..KEY.len() / 3]), "{error}");
    }
}

#[tokio::test]
async fn what_the_user_adds_to_the_body_arrives() {
    let mut request = ask("hello");
    request.extra.insert("top_k".into(), json!(40));
    request.extra.insert("nested".into(), json!({ "deep": [1, 2] }));
    let config = ModelConfig::named("openai", "the-model");
    let body = sent_to(config, request, &CallContext::default()).await.body();
    assert_eq!(body["top_k"], json!(40));
    assert_eq!(body["nested"], json!({ "deep": [1, 2] }));
    assert_eq!(body["model"], json!("the-model"));
}

#[tokio::test]
async fn the_model_is_filled_in_whatever_the_request_says() {
    let request = Request { model: "another".into(), ..ask("hello") };
    let config = ModelConfig::named("openai", "the-model");
    let body = sent_to(config, request, &CallContext::default()).await.body();
    assert_eq!(body["model"], json!("the-model"));
}

#[tokio::test]
async fn a_model_or_a_request_can_ask_for_a_stream() {
    for (by_model, by_request) in [(false, false), (true, false), (false, true)] {
        let config = ModelConfig { stream: by_model, ..ModelConfig::named("openai", "the-model") };
        let request = Request { stream: by_request, ..ask("hello") };
        let body = sent_to(config, request, &CallContext::default()).await.body();
        assert_eq!(body["stream"].as_bool().unwrap_or(false), by_model || by_request);
    }
}

#[tokio::test]
async fn own_parameters_and_headers_arrive() {
    let config = ModelConfig {
        base_url: Some("https://gateway.example/llm/v1/?tenant=7".into()),
        query: vec![
            ("api-version".into(), "2025-01-01 preview&more".into()),
            ("token".into(), "$TOKEN".into()),
        ],
        headers: vec![("X-Team".into(), "blue".into()), ("x-token".into(), "${TOKEN}".into())],
        ..ModelConfig::named("openai", "the-model")
    };
    let sent = sent_to(config, ask("hello"), &CallContext::default()).await;
    let url = &sent.request.url;
    assert_eq!(url.host_str(), Some("gateway.example"));
    assert_eq!(url.path(), "/llm/v1/chat/completions");
    let query: Vec<(String, String)> = url.query_pairs().into_owned().collect();
    let expected = [("tenant", "7"), ("api-version", "2025-01-01 preview&more"), ("token", KEY)];
    assert_eq!(query, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
    assert_eq!(sent.header("x-team"), Some("blue"));
    assert_eq!(sent.header("x-token"), Some(KEY));
    assert_eq!(sent.header("content-type"), Some("application/json"));
}

#[tokio::test]
async fn own_parameters_stand_beside_those_of_the_format() {
    let config = ModelConfig {
        query: pair("key", "value"),
        stream: true,
        ..ModelConfig::named("gemini", "g")
    };
    let sent = sent_to(config, ask("hello"), &CallContext::default()).await;
    assert_eq!(sent.request.url.query(), Some("alt=sse&key=value"));
}

#[tokio::test]
async fn an_own_header_replaces_that_of_the_format() {
    let config = ModelConfig {
        headers: vec![
            ("Authorization".into(), "Basic abc".into()),
            ("Anthropic-Version".into(), "2099-01-01".into()),
        ],
        ..ModelConfig::named("anthropic", "the-model")
    };
    let sent = sent_to(config, ask("hello"), &CallContext::default()).await;
    assert_eq!(sent.header("authorization"), Some("Basic abc"));
    assert_eq!(sent.header("anthropic-version"), Some("2099-01-01"));
}

#[tokio::test]
async fn only_simulated_models_are_told_the_trial() {
    for (name, header) in [
        ("sim/echo", Some("3/0")),
        ("the-model", None),
        ("simulated", None),
        ("vendor/sim/echo", None),
    ] {
        let context = CallContext { trial: 3, ..CallContext::default() };
        let sent = sent_to(ModelConfig::named("openai", name), ask("hello"), &context).await;
        assert_eq!(sent.header("x-bakeoff-trial"), header, "{name}");
    }
}

#[tokio::test]
async fn simulated_models_are_told_which_repetition_it_is() {
    let fake = Fake::always(Reply::text("fine"));
    let model = resolve(ModelConfig::named("openai", "sim/echo"));
    let (client, context) = (client(&fake), CallContext { trial: 3, ..CallContext::default() });
    for text in ["hello", "hello", "other", "hello"] {
        client.call(&model, ask(text), &context).await.unwrap();
    }
    let told: Vec<Sent> = fake.sent();
    let told: Vec<_> = told.iter().map(|sent| sent.header("x-bakeoff-trial").unwrap()).collect();
    assert_eq!(told, ["3/0", "3/1", "3/0", "3/2"]);
}

#[tokio::test(start_paused = true)]
async fn a_retry_is_the_same_request() {
    let fake = Fake::new(|number| match number {
        0 => Reply::error(500, "server_error", "it broke"),
        _ => Reply::text("fine"),
    });
    let model = resolve(ModelConfig::named("openai", "sim/echo"));
    client(&fake).call(&model, ask("hello"), &CallContext::default()).await.unwrap();
    let sent = fake.sent();
    let [first, second] = sent.as_slice() else { unreachable!("{sent:?}") };
    assert_eq!(first.request.url, second.request.url);
    assert_eq!(first.request.headers, second.request.headers);
    assert_eq!(first.request.body, second.request.body);
}

#[tokio::test]
async fn an_answer_that_repeats_the_key_comes_without_it() {
    let mut redactor = Redactor::default();
    redactor.add("sk-a-key-that-comes-back-0123456789");
    let fake = Fake::always(Reply::text("you sent sk-a-key-that-comes-back-0123456789!"));
    let config = ClientConfig { transport: Some(fake), redactor, ..ClientConfig::default() };
    let call = Client::new(config).call(&model(), ask("hello"), &CallContext::default()).await;
    assert_eq!(call.unwrap().response.text(), "you sent [redacted]!");
}
