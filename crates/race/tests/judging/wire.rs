//! Requests that reach a judge's provider.

use crate::support::{TestClient, race};
use bakeoff_agent::{AgentContext, AgentEvent, AgentLoopConfig, AgentMessage, event_channel};
use bakeoff_llm::{
    Client, ClientConfig, HttpRequest, HttpResponse, Model, ModelConfig, Transport, TransportError,
};
use bakeoff_race::{LlmJudgeEvaluation, Orders, RaceError, VerdictKind, agent_loop_parallel};
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use http::{HeaderMap, StatusCode};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use tokio_util::sync::CancellationToken;

/// A provider that records requests, replies with an invalid text first and then votes for response 2.
#[derive(Debug, Default)]
struct Provider {
    bodies: Mutex<Vec<Value>>,
}

impl Transport for Provider {
    fn send(&self, request: HttpRequest) -> BoxFuture<'_, Result<HttpResponse, TransportError>> {
        let mut bodies = self.bodies.lock().unwrap();
        bodies.push(serde_json::from_slice(&request.body).unwrap());
        let text = if bodies.len() == 1 { "Hm." } else { "2" };
        let body = json!({
            "id": "x", "model": "local",
            "choices": [{ "index": 0, "finish_reason": "stop",
                          "message": { "role": "assistant", "content": text } }],
            "usage": { "prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15 }
        });
        Box::pin(async move {
            let pieces = [Ok(Bytes::from(body.to_string()))];
            let body = futures_util::stream::iter(pieces).boxed();
            Ok(HttpResponse { status: StatusCode::OK, headers: HeaderMap::new(), body })
        })
    }
}

fn judge(provider: &Arc<Provider>) -> LlmJudgeEvaluation {
    let transport: Arc<dyn Transport> = Arc::clone(provider) as Arc<dyn Transport>;
    let client = Client::new(ClientConfig::default().transport(transport));
    let model = ModelConfig::named("openai", "local").base_url("http://127.0.0.1:9/v1");
    let model = Model::resolve(&model, &|_| None).unwrap();
    let mut config = AgentLoopConfig::new(&Arc::new(client), model);
    config.request.stream = false;
    config.request.temperature = Some(0.7);
    LlmJudgeEvaluation::new(config).orders(Orders::AsGiven)
}

#[tokio::test]
async fn reask_sends_the_whole_conversation() {
    let client = TestClient::new("a = { default = \"alpha\" }\nb = { default = \"beta\" }");
    let provider = Arc::new(Provider::default());
    let run = race(client.configs(&["a", "b"]), judge(&provider)).await;
    let result = run.result();
    assert_eq!((result.selected_index, result.verdict.kind), (1, VerdictKind::Decided));
    assert_eq!(result.verdict.cost, None, "the price is unknown");
    assert_eq!(result.evaluation_usage.total(), 30);
    let bodies = provider.bodies.lock().unwrap();
    let [first, second] = &bodies[..] else { panic!("two calls: {bodies:?}") };
    assert_eq!(first.get("tools"), None);
    assert_eq!(first["temperature"], 0.7);
    let roles = |body: &Value| -> Vec<String> {
        let messages = body["messages"].as_array().unwrap();
        messages.iter().map(|message| message["role"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(roles(first), ["system", "user"]);
    assert_eq!(roles(second), ["system", "user", "assistant", "user"]);
    let instructions = first["messages"][0]["content"].to_string();
    assert!(instructions.contains("You are an impartial judge"), "{instructions}");
    assert_eq!(first["messages"][1], second["messages"][1]);
    assert!(second["messages"][2]["content"].to_string().contains("Hm."));
    assert!(!first.to_string().contains("sim"), "no model names");
}

#[tokio::test]
async fn race_cancelled_during_judging_has_no_winner() {
    let client = TestClient::new(
        r#"
        a = { default = "alpha" }
        b = { default = "beta" }
        j = { default = "1", latency = { kind = "fixed", ms = 3600000 } }
        "#,
    );
    let (tx, mut events) = event_channel(1_000);
    let cancel = CancellationToken::new();
    let race = agent_loop_parallel(
        vec![AgentMessage::user("go")],
        AgentContext::default(),
        client.configs(&["a", "b"]),
        Arc::new(client.judge("j")),
        tx,
        cancel.clone(),
    );
    let watch = async {
        while let Some(event) = events.recv().await {
            if let AgentEvent::AgentStart { model, .. } = &event
                && model == "sim/j"
            {
                cancel.cancel();
            }
        }
    };
    let (result, ()) = tokio::join!(race, watch);
    assert!(matches!(result, Err(RaceError::Cancelled { .. })), "{result:?}");
}
