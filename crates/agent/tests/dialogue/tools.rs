//! Tool calls of the model.

use crate::support::{Provider, Reply, answer, double, tool, with_tools};
use bakeoff_agent::{
    AgentContext, AgentLoopConfig, AgentMessage, EventSender, LoopEnd, LoopStatus, Tool, ToolError,
    agent_loop,
};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Barrier;
use tokio_util::sync::CancellationToken;

async fn run(config: &AgentLoopConfig, tools: Vec<Arc<dyn Tool>>) -> (LoopEnd, AgentContext) {
    let mut context = with_tools(tools);
    let prompts = vec![AgentMessage::user("go")];
    let cancel = CancellationToken::new();
    let end =
        agent_loop(prompts, &mut context, config, EventSender::disabled(), cancel).await.unwrap();
    (end, context)
}

/// Returns the tool results in the second request.
fn results(provider: &Provider) -> Vec<Value> {
    let messages = provider.messages(1).into_iter();
    messages.filter(|message| message["role"] == "tool").map(|mut m| m["content"].take()).collect()
}

#[tokio::test(start_paused = true)]
async fn invalid_arguments_and_unknown_tools_are_reported_to_the_model() {
    let provider = Provider::new([
        Reply::Calls(vec![
            ("double", json!({ "n": "two" })),
            ("treble", json!({ "n": 2 })),
            ("double", json!({ "n": 2 })),
            ("double", json!({})),
        ]),
        Reply::Text("ok"),
    ]);
    let (end, _) = run(&provider.config(), vec![double()]).await;
    assert_eq!(end.status, LoopStatus::Completed);
    assert_eq!(
        results(&provider),
        [
            "Error: the arguments do not fit: \"two\" is not of type \"integer\" at /n",
            "Error: there is no tool `treble`; there are double",
            "4",
            "Error: the arguments do not fit: \"n\" is a required property",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn arguments_that_are_no_json_are_reported_to_the_model() {
    let call = json!({ "id": "c", "type": "function",
                       "function": { "name": "double", "arguments": "{\"n\": 2" } });
    let body = answer(&json!({ "tool_calls": [call] }), "length");
    let provider = Provider::new([Reply::Body(body), Reply::Text("ok")]);
    let (end, _) = run(&provider.config(), vec![double()]).await;
    assert_eq!(end.status, LoopStatus::Completed);
    assert_eq!(results(&provider), ["Error: the arguments are not a JSON object: {\"n\": 2"]);
}

#[tokio::test(start_paused = true)]
async fn tool_calls_run_concurrently() {
    let calls = vec![("meet", json!({ "n": 1 })), ("meet", json!({ "n": 2 }))];
    let provider = Provider::new([Reply::Calls(calls), Reply::Text("done")]);
    // Each of the two waits for the other.
    let barrier = Arc::new(Barrier::new(2));
    let meet = tool("meet", move |arguments, _| {
        let barrier = Arc::clone(&barrier);
        async move {
            barrier.wait().await;
            Ok(format!("met {}", arguments["n"]).into())
        }
    });
    let (end, _) = run(&provider.config(), vec![meet]).await;
    assert_eq!(end.status, LoopStatus::Completed);
    assert_eq!(results(&provider), ["met 1", "met 2"]);
}

#[tokio::test(start_paused = true)]
async fn tool_that_hangs_fails_or_panics_does_not_affect_the_others() {
    let calls = ["hang", "fail", "break", "double"].map(|name| (name, json!({ "n": 1 })));
    let provider = Provider::new([Reply::Calls(calls.to_vec()), Reply::Text("done")]);
    let hang = tool("hang", |_, _| std::future::pending());
    let fail = tool("fail", |_, _| async { Err(ToolError::Failed("not today".to_owned())) });
    let breaks = tool("break", |_, _| async { panic!("broken on purpose") });
    let config = provider.config().tool_timeout(Duration::from_secs(30));
    let (end, context) = run(&config, vec![hang, fail, breaks, double()]).await;
    assert_eq!(end.status, LoopStatus::Completed);
    assert_eq!(
        results(&provider),
        ["Error: it took longer than 30 s", "Error: not today", "Error: the tool broke down", "2"]
    );
    let failed: Vec<bool> = context.messages.iter().filter_map(is_error).collect();
    assert_eq!(failed, [true, true, true, false]);
}

fn is_error(message: &AgentMessage) -> Option<bool> {
    match message.as_llm() {
        Some(bakeoff_core::Message::ToolResult { is_error, .. }) => Some(*is_error),
        _ => None,
    }
}

#[tokio::test(start_paused = true)]
async fn tool_is_cancelled_when_the_loop_ends() {
    let provider = Provider::new([Reply::Calls(vec![("wait", json!({ "n": 1 }))])]);
    let (sender, mut receiver) = tokio::sync::mpsc::channel(1);
    let wait = tool("wait", move |_, context| {
        let sender = sender.clone();
        async move {
            // The task outlives the loop, as background work of a tool can.
            tokio::spawn(async move {
                context.cancel.cancelled().await;
                sender.send(()).await.unwrap();
            });
            std::future::pending().await
        }
    });
    let mut config = provider.config();
    config.limits.max_time = Duration::from_secs(10);
    let (end, context) = run(&config, vec![wait]).await;
    assert_eq!(end.status, LoopStatus::LimitReached(bakeoff_agent::LoopLimit::Time));
    receiver.recv().await.unwrap();
    // The call has a result, so the conversation can be continued.
    let last = context.messages.last().and_then(AgentMessage::as_llm).unwrap();
    assert_eq!(last.text(), "not finished: timed out");
}

#[tokio::test(start_paused = true)]
async fn lack_of_resources_fails_the_loop() {
    let provider = Provider::new([Reply::Calls(vec![("start", json!({ "n": 1 }))])]);
    let start = tool("start", |_, _| async {
        Err(ToolError::Machine("there are no processes left".to_owned()))
    });
    let (end, context) = run(&provider.config(), vec![start]).await;
    let LoopStatus::Failed(failure) = end.status else { panic!("{:?}", end.status) };
    assert_eq!(failure.kind, bakeoff_core::ErrorKind::Process);
    assert_eq!(failure.message, "there are no processes left");
    assert_eq!(context.messages.len(), 3, "the call has a result, too");
}
