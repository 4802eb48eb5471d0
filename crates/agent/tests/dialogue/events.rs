//! What is told while a loop goes on.

use crate::support::{Provider, Reply, double, drain, kind, tool, with_tools};
use bakeoff_agent::{
    AgentContext, AgentEvent, AgentMessage, LoopStatus, agent_loop, event_channel,
};
use bakeoff_llm::Delta;
use serde_json::json;
use tokio_util::sync::CancellationToken;

fn chunk(text: &str) -> String {
    let event = json!({ "choices": [{ "index": 0, "delta": { "content": text } }] });
    format!("data: {event}\n\n")
}

#[tokio::test(start_paused = true)]
async fn events_come_in_the_order_in_which_things_happen() {
    let finish = json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": "stop" }],
                         "usage": { "prompt_tokens": 1, "completion_tokens": 2 } });
    let stream =
        vec![chunk("for"), chunk("ty"), format!("data: {finish}\n\n"), "data: [DONE]\n\n".into()];
    let provider = Provider::new([
        Reply::Status(503),
        Reply::Calls(vec![("double", json!({ "n": 20 }))]),
        Reply::Stream(stream),
    ]);
    let (tx, rx) = event_channel(100);
    let mut context = with_tools([double()]);
    let prompts = vec![AgentMessage::user("Twice 20?")];
    let cancel = CancellationToken::new();
    let end = agent_loop(prompts, &mut context, &provider.config(), tx, cancel).await.unwrap();
    let events = drain(rx).await;
    assert!(events.iter().all(|event| event.loop_id() == Some(&end.loop_id)));
    let kinds: Vec<String> = events.iter().map(kind).collect();
    let expected = "agent_start message_start message_end \
        turn_start message_start retry message_end tool_execution_start tool_execution_end \
        message_start message_end turn_end \
        turn_start message_start message_update message_update message_end turn_end agent_end";
    assert_eq!(kinds.join(" "), expected);
    let pieces: Vec<&Delta> = events
        .iter()
        .filter_map(|event| match event {
            AgentEvent::MessageUpdate { delta, .. } => Some(delta),
            _ => None,
        })
        .collect();
    assert_eq!(pieces, [&Delta::Text("for".to_owned()), &Delta::Text("ty".to_owned())]);
    let Some(AgentEvent::AgentEnd { status, usage, .. }) = events.last() else { panic!() };
    assert_eq!((status, *usage), (&LoopStatus::Completed, end.usage));
}

#[tokio::test(start_paused = true)]
async fn pieces_arrive_while_the_answer_is_still_coming() {
    // The stream breaks off, and when it is asked again the provider never answers.
    let provider = Provider::new([Reply::Stream(vec![chunk("first")]), Reply::Hang]);
    let config = provider.config();
    let (tx, mut rx) = event_channel(100);
    let cancel = CancellationToken::new();
    let mut context = AgentContext::default();
    let prompts = vec![AgentMessage::user("x")];
    let work = agent_loop(prompts, &mut context, &config, tx, cancel.clone());
    let listen = async {
        while let Some(event) = rx.recv().await {
            if matches!(event, AgentEvent::MessageUpdate { .. }) {
                cancel.cancel();
            }
        }
    };
    let (end, ()) = tokio::join!(work, listen);
    assert_eq!(end.unwrap().status, LoopStatus::Cancelled);
}

#[tokio::test(start_paused = true)]
async fn a_reader_that_is_too_slow_is_told_what_it_missed_and_misses_no_end() {
    let calls = vec![("chatter", json!({ "n": 50 }))];
    let provider = Provider::new([Reply::Calls(calls), Reply::Text("done")]);
    let chatter = tool("chatter", |arguments, context| async move {
        for number in 0..arguments["n"].as_i64().unwrap() {
            context.progress.tell(number.to_string());
        }
        Ok("said".into())
    });
    let (tx, rx) = event_channel(8);
    let mut context = with_tools([chatter]);
    let prompts = vec![AgentMessage::user("x")];
    let cancel = CancellationToken::new();
    agent_loop(prompts, &mut context, &provider.config(), tx, cancel).await.unwrap();
    let events = drain(rx).await;
    let notes: Vec<&AgentEvent> =
        events.iter().filter(|event| kind(event) == "progress_message").collect();
    assert_eq!(notes.len(), 8);
    let missed: Vec<u64> = events
        .iter()
        .filter_map(|event| match event {
            AgentEvent::Lagged { missed } => Some(*missed),
            _ => None,
        })
        .collect();
    assert_eq!(missed, [42]);
    // The gap is told where it is: after the notes, before the tool's end.
    let kinds: Vec<String> = events.iter().map(kind).collect();
    let gap = kinds.iter().position(|kind| kind == "lagged").unwrap();
    assert_eq!(kinds[gap - 1..=gap + 1], ["progress_message", "lagged", "tool_execution_end"]);
    let starts = kinds.iter().filter(|kind| kind.ends_with("_start")).count();
    let ends = kinds.iter().filter(|kind| kind.ends_with("_end")).count();
    assert_eq!((starts, ends), (8, 8));
}

#[tokio::test(start_paused = true)]
async fn a_loop_goes_on_when_nobody_listens_any_more() {
    let provider = Provider::new([Reply::Text("done")]);
    let (tx, rx) = event_channel(8);
    drop(rx);
    let mut context = AgentContext::default();
    let prompts = vec![AgentMessage::user("x")];
    let cancel = CancellationToken::new();
    let end = agent_loop(prompts, &mut context, &provider.config(), tx, cancel).await.unwrap();
    assert_eq!(end.status, LoopStatus::Completed);
}
