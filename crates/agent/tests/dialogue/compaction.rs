//! What is sent of a conversation that is too long.

use crate::support::{Provider, Reply, drain};
use bakeoff_agent::{
    AgentContext, AgentEvent, AgentLoopConfig, AgentMessage, ContextConfig, agent_loop,
    agent_loop_continue, event_channel,
};
use bakeoff_core::{Content, Message, ToolCall};
use proptest::prelude::*;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

fn text_of(message: &Value) -> &str {
    message["content"].as_str().unwrap_or_default()
}

/// Runs one turn over a conversation; what was sent, and the events.
async fn sent(
    messages: Vec<Message>,
    limits: ContextConfig,
) -> (Vec<Value>, Vec<AgentEvent>, AgentContext) {
    sent_with("And now?", messages, limits).await
}

async fn sent_with(
    prompt: &str,
    messages: Vec<Message>,
    limits: ContextConfig,
) -> (Vec<Value>, Vec<AgentEvent>, AgentContext) {
    let provider = Provider::new([Reply::Text("ok")]);
    let config = AgentLoopConfig { context_config: Some(limits), ..provider.config() };
    let mut context = AgentContext {
        system_prompt: "Be brief.".to_owned(),
        messages: messages.into_iter().map(AgentMessage::from).collect(),
        ..AgentContext::default()
    };
    let (tx, rx) = event_channel(100);
    let prompts = vec![AgentMessage::user(prompt)];
    let cancel = CancellationToken::new();
    agent_loop(prompts, &mut context, &config, tx, cancel).await.unwrap();
    (provider.messages(0), drain(rx).await, context)
}

fn chat(turns: usize, length: usize) -> Vec<Message> {
    (0..turns)
        .flat_map(|turn| {
            let text = |who: &str| format!("{who} {turn} {}", "я".repeat(length));
            [Message::user(text("question")), Message::assistant(text("answer"))]
        })
        .collect()
}

#[tokio::test(start_paused = true)]
async fn what_fits_is_sent_whole_and_what_does_not_is_compacted_on_the_wire() {
    let limits = |max_context_tokens| ContextConfig { max_context_tokens, ..Default::default() };
    let (messages, events, _) = sent(chat(40, 100), limits(100_000)).await;
    assert_eq!(messages.len(), 82);
    assert!(!events.iter().any(|event| matches!(event, AgentEvent::Compaction { .. })));

    let (messages, events, context) = sent(chat(40, 100), limits(1_000)).await;
    // Instructions, the first two, a note, the last ten.
    assert_eq!(messages.len(), 14);
    assert_eq!(text_of(&messages[0]), "Be brief.");
    assert!(text_of(&messages[1]).starts_with("question 0"));
    assert_eq!(text_of(&messages[3]), "[69 earlier messages are left out here]");
    assert_eq!(text_of(&messages[13]), "And now?");
    let told = events.iter().find_map(|event| match event {
        AgentEvent::Compaction { messages, sent_messages, tokens, sent_tokens, .. } => {
            Some((*messages, *sent_messages, *tokens > 2_000, *sent_tokens <= 900))
        }
        _ => None,
    });
    assert_eq!(told, Some((81, 13, true, true)));
    // The conversation itself is as it was, with the answer.
    assert_eq!(context.messages.len(), 82);
}

#[tokio::test(start_paused = true)]
async fn outputs_of_tools_are_shortened_first_and_never_torn_from_their_calls() {
    let lines: Vec<String> = (1..=300).map(|line| format!("line {line}")).collect();
    let mut messages = vec![Message::user("read it")];
    messages.extend(used("c1", &lines.join("\n")));
    let limits = ContextConfig { max_context_tokens: 400, ..Default::default() };
    let (sent_messages, _, _) = sent(messages.clone(), limits.clone()).await;
    assert_eq!(sent_messages.len(), 5);
    let output = text_of(&sent_messages[3]);
    assert!(output.starts_with("line 1\n") && output.ends_with("line 300"), "{output}");
    assert!(output.contains("line 25\n[250 lines left out]\nline 276"), "{output}");

    // However little is kept, a result comes with its call.
    messages.extend(chat(3, 10));
    for keep_recent in 1..10 {
        let limits = ContextConfig { max_context_tokens: 300, keep_recent, ..limits.clone() };
        let (sent_messages, _, _) = sent(messages.clone(), limits).await;
        let calls = sent_messages.iter().filter(|m| m.get("tool_calls").is_some()).count();
        let results = sent_messages.iter().filter(|m| m["role"] == "tool").count();
        assert_eq!(calls, results, "{keep_recent}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_window_that_is_too_small_for_anything_is_told() {
    let limits = ContextConfig { max_context_tokens: 20, ..Default::default() };
    let huge = "漢字😀".repeat(5_000);
    let (messages, events, context) = sent_with(&huge, chat(3, 10), limits).await;
    let told = events.iter().find_map(|event| match event {
        AgentEvent::ProgressMessage { text, .. } => Some(text.clone()),
        _ => None,
    });
    let told = told.unwrap();
    assert!(told.starts_with("the conversation has about"), "{told}");
    // As much of the question as may be is sent in any case.
    let sent = text_of(messages.last().unwrap());
    assert_eq!(sent.strip_suffix("...").map(|text| text.chars().count()), Some(200));
    assert_eq!(context.messages[6], AgentMessage::user(huge));
}

#[tokio::test(start_paused = true)]
async fn the_question_is_sent_even_when_a_tool_said_very_much() {
    // One line of 20 000 characters, as minified JSON has it.
    let mut messages = vec![Message::user("Summarise data.json in French.")];
    messages.extend(used("c1", &"x".repeat(20_000)));
    let limits = ContextConfig { max_context_tokens: 2_000, ..Default::default() };
    let provider = Provider::new([Reply::Text("ok")]);
    let config = AgentLoopConfig { context_config: Some(limits), ..provider.config() };
    let mut context = AgentContext {
        messages: messages.into_iter().map(AgentMessage::from).collect(),
        ..AgentContext::default()
    };
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

/// A tool that was called, and what it said.
fn used(id: &str, output: &str) -> [Message; 2] {
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
enum Said {
    Asked(String),
    Answered(String),
    Used(String),
}

fn said() -> impl Strategy<Value = Said> {
    let text = "\\PC{0,300}";
    prop_oneof![
        text.prop_map(Said::Asked),
        text.prop_map(Said::Answered),
        text.prop_map(Said::Used)
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn nothing_panics_pairs_stay_together_and_what_is_told_is_true(
        said in prop::collection::vec(said(), 0..20),
        max_context_tokens in 0_u64..2_000,
        keep_first in 0_usize..5,
        keep_recent in 0_usize..5,
        tool_output_lines in 0_usize..4,
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let messages = said.into_iter().enumerate().flat_map(|(number, said)| match said {
            Said::Asked(text) => vec![Message::user(text)],
            Said::Answered(text) => vec![Message::assistant(text)],
            Said::Used(text) => used(&format!("c{number}"), &text).to_vec(),
        });
        let limits =
            ContextConfig { max_context_tokens, keep_first, keep_recent, tool_output_lines };
        let (messages, events, _) = runtime.block_on(sent(messages.collect(), limits));
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
        // The instructions, `Be brief.`, take three tokens.
        let budget = (max_context_tokens / 10 * 9).saturating_sub(3);
        prop_assert_eq!(is_warned, sent_tokens.is_some_and(|tokens| tokens > budget));
    }
}
