//! Requests of the client, and redaction of secrets.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests may panic")]

mod support;

use bakeoff_core::{ErrorKind, Redactor, Request};
use bakeoff_llm::{CallContext, Client, ClientConfig, Model, ModelConfig, Retry, Transport};
use bakeoff_pace::RetryPolicy;
use serde_json::json;
use std::sync::{Arc, Mutex};
use support::{FakeServer, KEY, Reply, SentRequest, client, model, prompt, resolve};

/// Returns the request that is sent to a model with this configuration.
async fn sent_to(config: ModelConfig, request: Request, context: &CallContext<'_>) -> SentRequest {
    let server = FakeServer::always(Reply::error(400, "invalid", "rejected"));
    client(&server).call(&resolve(config), request, context).await.unwrap_err();
    server.sent().remove(0)
}

#[tokio::test]
async fn key_is_sent_in_one_header_and_shown_nowhere() {
    let azure = ModelConfig::named("azure", "the-model").base_url("https://me.example/openai/v1");
    let bearer = format!("Bearer {KEY}");
    for (config, name, value) in [
        (ModelConfig::named("openai", "the-model"), "authorization", bearer.as_str()),
        (ModelConfig::named("openai-responses", "the-model"), "authorization", &bearer),
        (ModelConfig::named("anthropic", "the-model"), "x-api-key", KEY),
        (ModelConfig::named("gemini", "the-model"), "x-goog-api-key", KEY),
        (azure, "api-key", KEY),
    ] {
        let server = FakeServer::always(Reply::error(400, "invalid", "rejected"));
        let (client, model) = (client(&server), resolve(config));
        let error =
            client.call(&model, prompt("hello"), &CallContext::default()).await.unwrap_err();
        let sent = server.sent().remove(0);
        assert_eq!(sent.header(name), Some(value));
        let values = sent.request.headers.values();
        let with_key = values.filter(|value| value.to_str().unwrap().contains(KEY)).count();
        assert_eq!(with_key, 1, "the key is in more headers than {name}");
        // The debug output of the request includes URL and headers.
        let shown = format!("{:?} {model:?} {client:?} {error:?} {error}", sent.request);
        assert!(!shown.contains(KEY), "{shown}");
    }
}

/// Creates a client that redacts the key of the model.
fn redacting_client(server: &Arc<FakeServer>, model: &Model) -> Client {
    let mut redactor = Redactor::default();
    model.add_secrets(&mut redactor);
    let transport: Arc<dyn Transport> = server.clone();
    let retry = RetryPolicy::default().max_retries(1);
    Client::new(ClientConfig::default().transport(transport).redactor(redactor).retry(retry))
}

#[tokio::test(start_paused = true)]
async fn echoed_key_is_redacted_in_errors() {
    let message = format!("the key {KEY} is wrong");
    let replies = [
        Reply::error(401, "invalid_api_key", &message),
        Reply::error(401, KEY, &message),
        Reply::status(500, message.clone()),
        Reply::status(200, message.clone()),
        Reply::status(200, json!({ "error": { "code": KEY, "message": message } }).to_string()),
        Reply::events(format!("data: {message}\n\n")),
        Reply::connection_error(&message),
    ];
    for reply in replies {
        let (server, model) = (FakeServer::always(reply.clone()), model());
        let noted = Mutex::new(String::new());
        let note = |retry: &Retry<'_>| *noted.lock().unwrap() = format!("{retry:?}");
        let context = CallContext::default().on_retry(&note);
        let error = redacting_client(&server, &model)
            .call(&model, prompt("x"), &context)
            .await
            .unwrap_err();
        let shown = format!("{error:?} {}", noted.into_inner().unwrap());
        assert!(shown.contains("the key [redacted] is wrong"), "{shown}");
        assert!(!shown.contains(KEY), "{shown}");
    }
}

#[tokio::test(start_paused = true)]
async fn key_is_redacted_before_the_message_is_truncated() {
    // Messages are truncated after 500 characters, and bodies that are not JSON after 200.
    let long = |start: usize| format!("{}{KEY} and more", "-".repeat(start - KEY.len() / 2));
    for (reply, kind) in [
        (Reply::error(401, "invalid_api_key", &long(500)), ErrorKind::Auth),
        (Reply::status(401, long(200)), ErrorKind::Auth),
        (Reply::status(200, long(200)), ErrorKind::MalformedResponse),
    ] {
        let (server, model) = (FakeServer::always(reply), model());
        let context = CallContext::default();
        let error = redacting_client(&server, &model)
            .call(&model, prompt("x"), &context)
            .await
            .unwrap_err();
        assert_eq!(error.failure.kind, kind);
        assert!(!error.to_string().contains(&KEY[..KEY.len() / 3]), "{error}");
    }
}

#[tokio::test]
async fn extra_fields_are_sent_in_the_body() {
    let mut request = prompt("hello");
    request.extra.insert("top_k".into(), json!(40));
    request.extra.insert("nested".into(), json!({ "deep": [1, 2] }));
    let config = ModelConfig::named("openai", "the-model");
    let body = sent_to(config, request, &CallContext::default()).await.body();
    assert_eq!(body["top_k"], json!(40));
    assert_eq!(body["nested"], json!({ "deep": [1, 2] }));
    assert_eq!(body["model"], json!("the-model"));
}

#[tokio::test]
async fn provider_decides_the_field_of_the_token_limit() {
    let server = "https://gateway.example/v1";
    let completion = |provider: &str| ModelConfig::named(provider, "llama-3-8b").base_url(server);
    let cases = [
        (completion("openai"), "max_completion_tokens"),
        (ModelConfig::named("openai", "gpt-4o"), "max_completion_tokens"),
        (ModelConfig::named("openai", "o3"), "max_completion_tokens"),
        (completion("azure"), "max_completion_tokens"),
        (ModelConfig::named("groq", "gpt-5"), "max_tokens"),
        (ModelConfig::named("mistral", "o3"), "max_tokens"),
        (ModelConfig::named("together", "m"), "max_tokens"),
        (ModelConfig::named("openrouter", "openai/gpt-5"), "max_tokens"),
        (ModelConfig::named("cerebras", "m"), "max_tokens"),
        (completion("sim"), "max_tokens"),
    ];
    for (config, field) in cases {
        let provider = config.provider.clone();
        let request = Request { max_tokens: Some(7), ..prompt("hello") };
        let body = sent_to(config, request, &CallContext::default()).await.body();
        assert_eq!(body[field], 7, "{provider}");
        let fields = ["max_tokens", "max_completion_tokens"];
        assert_eq!(fields.iter().filter(|name| body.get(**name).is_some()).count(), 1);
    }
}

#[tokio::test]
async fn model_of_the_request_is_overwritten() {
    let request = Request { model: "another".into(), ..prompt("hello") };
    let config = ModelConfig::named("openai", "the-model");
    let body = sent_to(config, request, &CallContext::default()).await.body();
    assert_eq!(body["model"], json!("the-model"));
}

#[tokio::test]
async fn model_or_request_enables_streaming() {
    for (by_model, by_request) in [(false, false), (true, false), (false, true)] {
        let config = ModelConfig::named("openai", "the-model").stream(by_model);
        let request = Request { stream: by_request, ..prompt("hello") };
        let body = sent_to(config, request, &CallContext::default()).await.body();
        assert_eq!(body["stream"].as_bool().unwrap_or(false), by_model || by_request);
    }
}

#[tokio::test]
async fn configured_query_and_headers_are_sent() {
    let config = ModelConfig::named("openai", "the-model")
        .base_url("https://gateway.example/llm/v1/?tenant=7")
        .query("api-version", "2025-01-01 preview&more")
        .query("token", "$TOKEN")
        .header("X-Team", "blue")
        .header("x-token", "${TOKEN}");
    let sent = sent_to(config, prompt("hello"), &CallContext::default()).await;
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
async fn configured_query_is_added_to_that_of_the_format() {
    let config = ModelConfig::named("gemini", "g").query("key", "value").stream(true);
    let sent = sent_to(config, prompt("hello"), &CallContext::default()).await;
    assert_eq!(sent.request.url.query(), Some("alt=sse&key=value"));
}

#[tokio::test]
async fn configured_header_replaces_that_of_the_format() {
    let config = ModelConfig::named("anthropic", "the-model")
        .header("Authorization", "Basic abc")
        .header("Anthropic-Version", "2099-01-01");
    let sent = sent_to(config, prompt("hello"), &CallContext::default()).await;
    assert_eq!(sent.header("authorization"), Some("Basic abc"));
    assert_eq!(sent.header("anthropic-version"), Some("2099-01-01"));
}

#[tokio::test]
async fn trial_header_is_sent_only_to_simulated_models() {
    for (name, header) in [
        ("sim/echo", Some("3/0")),
        ("the-model", None),
        ("simulated", None),
        ("vendor/sim/echo", None),
    ] {
        let context = CallContext::default().trial(3);
        let sent = sent_to(ModelConfig::named("openai", name), prompt("hello"), &context).await;
        assert_eq!(sent.header("x-bakeoff-trial"), header, "{name}");
    }
}

#[tokio::test]
async fn trial_header_counts_repeated_requests() {
    let server = FakeServer::always(Reply::text("fine"));
    let model = resolve(ModelConfig::named("openai", "sim/echo"));
    let (client, context) = (client(&server), CallContext::default().trial(3));
    for text in ["hello", "hello", "other", "hello"] {
        client.call(&model, prompt(text), &context).await.unwrap();
    }
    let sent: Vec<SentRequest> = server.sent();
    let trials: Vec<_> = sent.iter().map(|sent| sent.header("x-bakeoff-trial").unwrap()).collect();
    assert_eq!(trials, ["3/0", "3/1", "3/0", "3/2"]);
}

#[tokio::test(start_paused = true)]
async fn retry_repeats_the_request_unchanged() {
    let server = FakeServer::new(|number| match number {
        0 => Reply::error(500, "server_error", "it broke"),
        _ => Reply::text("fine"),
    });
    let model = resolve(ModelConfig::named("openai", "sim/echo"));
    client(&server).call(&model, prompt("hello"), &CallContext::default()).await.unwrap();
    let sent = server.sent();
    let [first, second] = sent.as_slice() else { unreachable!("{sent:?}") };
    assert_eq!(first.request.url, second.request.url);
    assert_eq!(first.request.headers, second.request.headers);
    assert_eq!(first.request.body, second.request.body);
}

#[tokio::test]
async fn echoed_key_is_redacted_in_responses() {
    let mut redactor = Redactor::default();
    redactor.add("sk-a-key-that-is-echoed-0123456789");
    let server = FakeServer::always(Reply::text("you sent sk-a-key-that-is-echoed-0123456789!"));
    let config = ClientConfig::default().transport(server).redactor(redactor);
    let call = Client::new(config).call(&model(), prompt("hello"), &CallContext::default()).await;
    assert_eq!(call.unwrap().response.text(), "you sent [redacted]!");
}
