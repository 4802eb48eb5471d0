//! Compaction of conversations that are too long.

use crate::support::{Provider, Reply, drain};
use bakeoff_agent::{
    AgentContext, AgentEvent, AgentMessage, ContextConfig, agent_loop, agent_loop_continue,
    event_channel,
};
use bakeoff_core::{Content, Message, ToolCall};
use proptest::prelude::*;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

fn text_of(message: &Value) -> &str {
    message["content"].as_str().unwrap_or_default()
}

/// Runs one turn over a conversation; returns the sent messages, the events and the context.
async fn run_turn(
    messages: Vec<Message>,
    limits: ContextConfig,
) -> (Vec<Value>, Vec<AgentEvent>, AgentContext) {
    run_turn_with("And now?", messages, limits).await
}

async fn run_turn_with(
    prompt: &str,
    messages: Vec<Message>,
    limits: ContextConfig,
) -> (Vec<Value>, Vec<AgentEvent>, AgentContext) {
    let provider = Provider::new([Reply::Text("ok")]);
    let config = provider.config().context_config(limits);
    let mut context = AgentContext::default()
        .with_system_prompt("Be brief.")
        .with_messages(messages.into_iter().map(AgentMessage::from).collect());
    let (tx, rx) = event_channel(100);
    let prompts = vec![AgentMessage::user(prompt)];
    let cancel = CancellationToken::new();
    agent_loop(prompts, &mut context, &config, tx, cancel).await.unwrap();
    (provider.messages(0), drain(rx).await, context)
}

fn chat(turns: usize, length: usize) -> Vec<Message> {
    (0..turns)
        .flat_map(|turn| {
            let text = |name: &str| format!("{name} {turn} {}", "я".repeat(length));
            [Message::user(text("question")), Message::assistant(text("answer"))]
        })
        .collect()
}

#[tokio::test(start_paused = true)]
async fn conversation_is_compacted_only_if_it_does_not_fit() {
    let limits = ContextConfig::new;
    let (messages, events, _) = run_turn(chat(40, 100), limits(100_000)).await;
    assert_eq!(messages.len(), 82);
    assert!(!events.iter().any(|event| matches!(event, AgentEvent::Compaction { .. })));

    let (messages, events, context) = run_turn(chat(40, 100), limits(1_000)).await;
    // Instructions, the first two messages, a note, the last ten messages.
    assert_eq!(messages.len(), 14);
    assert_eq!(text_of(&messages[0]), "Be brief.");
    assert!(text_of(&messages[1]).starts_with("question 0"));
    assert_eq!(text_of(&messages[3]), "[69 earlier messages are left out here]");
    assert_eq!(text_of(&messages[13]), "And now?");
    let figures = events.iter().find_map(|event| match event {
        AgentEvent::Compaction { messages, sent_messages, tokens, sent_tokens, .. } => {
            Some((*messages, *sent_messages, *tokens > 2_000, *sent_tokens <= 900))
        }
        _ => None,
    });
    assert_eq!(figures, Some((81, 13, true, true)));
    // The conversation itself is unchanged, except for the response.
    assert_eq!(context.messages.len(), 82);
}

#[tokio::test(start_paused = true)]
async fn tool_results_are_shortened_first_and_stay_with_their_calls() {
    let lines: Vec<String> = (1..=300).map(|line| format!("line {line}")).collect();
    let mut messages = vec![Message::user("read it")];
    messages.extend(tool_use("c1", &lines.join("\n")));
    let limits = ContextConfig::new(400);
    let (sent_messages, _, _) = run_turn(messages.clone(), limits.clone()).await;
    assert_eq!(sent_messages.len(), 5);
    let output = text_of(&sent_messages[3]);
    assert!(output.starts_with("line 1\n") && output.ends_with("line 300"), "{output}");
    assert!(output.contains("line 25\n[250 lines left out]\nline 276"), "{output}");

    // For every number of kept messages, a result comes with its call.
    messages.extend(chat(3, 10));
    for keep_recent in 1..10 {
        let limits = ContextConfig::new(300).keep_recent(keep_recent);
        let (sent_messages, _, _) = run_turn(messages.clone(), limits).await;
        let calls = sent_messages.iter().filter(|m| m.get("tool_calls").is_some()).count();
        let results = sent_messages.iter().filter(|m| m["role"] == "tool").count();
        assert_eq!(calls, results, "{keep_recent}");
    }
}

#[tokio::test(start_paused = true)]
async fn window_that_is_too_small_causes_a_warning() {
    let limits = ContextConfig::new(20);
    let huge = "漢字😀".repeat(5_000);
    let (messages, events, context) = run_turn_with(&huge, chat(3, 10), limits).await;
    let message = events.iter().find_map(|event| match event {
        AgentEvent::ProgressMessage { text, .. } => Some(text.clone()),
        _ => None,
    });
    let message = message.unwrap();
    assert!(message.starts_with("the conversation has about"), "{message}");
    // The task is always sent, truncated to the minimum of 50 tokens; 漢 and 字 are one each, 😀 is two.
    let sent = text_of(messages.last().unwrap());
    assert_eq!(sent.strip_suffix("...").map(|text| text.chars().count()), Some(37));
    assert_eq!(context.messages[6], AgentMessage::user(huge));
}

#[tokio::test(start_paused = true)]
async fn task_is_sent_even_if_a_tool_result_is_very_long() {
    // One line of 20 000 characters, as in minified JSON.
    let mut messages = vec![Message::user("Summarise data.json in French.")];
    messages.extend(tool_use("c1", &"x".repeat(20_000)));
    let limits = ContextConfig::new(2_000);
    let provider = Provider::new([Reply::Text("ok")]);
    let config = provider.config().context_config(limits);
    let mut context = AgentContext::default()
        .with_messages(messages.into_iter().map(AgentMessage::from).collect());
    let (tx, rx) = event_channel(100);
    let cancel = CancellationToken::new();
    agent_loop_continue(&mut context, &config, tx, cancel).await.unwrap();
    let sent = provider.messages(0);
    assert_eq!(text_of(&sent[0]), "Summarise data.json in French.");
    let output = text_of(&sent[2]);
    assert!(output.len() > 5_000 && output.ends_with("x..."), "{}", output.len());
    let events = drain(rx).await;
    assert!(!events.iter().any(|event| matches!(event, AgentEvent::ProgressMessage { .. })));
}

/// Returns a tool call and its result.
fn tool_use(id: &str, output: &str) -> [Message; 2] {
    let call = ToolCall { id: id.to_owned(), name: "read".to_owned(), arguments: json!({}) };
    let result = Message::ToolResult {
        tool_call_id: id.to_owned(),
        name: "read".to_owned(),
        content: vec![Content::text(output)],
        is_error: false,
    };
    [Message::Assistant { content: vec![Content::ToolCall(call)] }, result]
}

#[derive(Debug, Clone)]
enum HistoryEntry {
    User(String),
    Assistant(String),
    ToolUse(String),
}

fn history_entry() -> impl Strategy<Value = HistoryEntry> {
    let text = "\\PC{0,300}";
    prop_oneof![
        text.prop_map(HistoryEntry::User),
        text.prop_map(HistoryEntry::Assistant),
        text.prop_map(HistoryEntry::ToolUse)
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn tool_calls_keep_their_results_and_the_warning_is_exact(
        history in prop::collection::vec(history_entry(), 0..20),
        max_context_tokens in 0_u64..2_000,
        keep_first in 0_usize..5,
        keep_recent in 0_usize..5,
        tool_output_lines in 0_usize..4,
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let messages = history.into_iter().enumerate().flat_map(|(number, entry)| match entry {
            HistoryEntry::User(text) => vec![Message::user(text)],
            HistoryEntry::Assistant(text) => vec![Message::assistant(text)],
            HistoryEntry::ToolUse(text) => tool_use(&format!("c{number}"), &text).to_vec(),
        });
        let limits =
            ContextConfig::new(max_context_tokens)
                .keep_first(keep_first)
                .keep_recent(keep_recent)
                .tool_output_lines(tool_output_lines);
        let (messages, events, _) = runtime.block_on(run_turn(messages.collect(), limits));
        prop_assert_eq!(text_of(messages.last().unwrap()), "And now?");
        let ids = |of: fn(&Value) -> Option<&Value>| -> Vec<String> {
            messages.iter().filter_map(of).map(Value::to_string).collect()
        };
        let called = ids(|message| message.get("tool_calls").map(|calls| &calls[0]["id"]));
        let answered = ids(|message| message.get("tool_call_id"));
        prop_assert_eq!(called, answered);
        let sent_tokens = events.iter().find_map(|event| match event {
            AgentEvent::Compaction { sent_tokens, .. } => Some(*sent_tokens),
            _ => None,
        });
        let is_warned = events.iter().any(|e| matches!(e, AgentEvent::ProgressMessage { .. }));
        // The instructions, `Be brief.`, have three tokens.
        let budget = (max_context_tokens / 10 * 9).saturating_sub(3);
        prop_assert_eq!(is_warned, sent_tokens.is_some_and(|tokens| tokens > budget));
    }
}
