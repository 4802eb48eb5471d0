//! Conversations: requests, continued contexts and loop ids.

use crate::support::{Provider, Reply, double, model, with_tools};
use bakeoff_agent::{
    AgentContext, AgentEvent, AgentMessage, EventSender, Extension, LoopError, LoopStatus,
    PromptTemplate, agent_loop, agent_loop_continue, event_channel,
};
use bakeoff_core::{Content, ImageSource, Message, Usage};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

fn no_events() -> (EventSender, CancellationToken) {
    (EventSender::disabled(), CancellationToken::new())
}

#[tokio::test(start_paused = true)]
async fn every_call_sends_the_whole_conversation() {
    let provider = Provider::new([
        Reply::Calls(vec![("double", json!({ "n": 21 }))]),
        Reply::Text("42"),
        Reply::Text("Because."),
    ]);
    let config = provider.config();
    let mut context = with_tools([double()]).with_system_prompt("Be brief.");
    context.messages.push(Message::user("Hello").into());
    context.messages.push(Message::assistant("Hi").into());
    context.messages.push(AgentMessage::Extension(Extension {
        kind: "note".to_owned(),
        data: json!("never sent"),
    }));
    let (tx, cancel) = no_events();
    let prompts = vec![AgentMessage::user("Twice 21?")];
    let end = agent_loop(prompts, &mut context, &config, tx, cancel).await.unwrap();
    assert_eq!(end.status, LoopStatus::Completed);
    assert_eq!((end.turns, end.usage), (2, Usage { input: 20, output: 10, ..Usage::default() }));

    let roles = |request: usize| -> Vec<String> {
        let messages = provider.messages(request);
        messages.iter().map(|message| message["role"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(roles(0), ["system", "user", "assistant", "user"]);
    assert_eq!(roles(1), ["system", "user", "assistant", "user", "assistant", "tool"]);
    assert_eq!(provider.messages(1)[5]["content"], "42");
    assert!(!format!("{:?}", provider.bodies()).contains("never sent"));

    // The prompts are part of the conversation, but not of the new messages.
    assert_eq!(context.messages.len(), 7);
    assert_eq!(end.new_messages, context.messages[4..]);

    context.messages.push(AgentMessage::user("Why?"));
    let (tx, cancel) = no_events();
    let end = agent_loop_continue(&mut context, &config, tx, cancel).await.unwrap();
    assert_eq!(end.new_messages, [AgentMessage::Llm(Message::assistant("Because."))]);
    assert_eq!(roles(2).len(), 8);
    assert_eq!(end.loop_id.number(), 2);
}

#[tokio::test(start_paused = true)]
async fn invalid_input_is_an_error_and_no_call_is_made() {
    let provider = Provider::new([]);
    let config = provider.config();
    let (tx, cancel) = no_events();
    let mut empty = AgentContext::default();
    let error = agent_loop(Vec::new(), &mut empty, &config, tx.clone(), cancel.clone()).await;
    assert_eq!(error.unwrap_err(), LoopError::NoPrompt);
    let error = agent_loop_continue(&mut empty, &config, tx.clone(), cancel.clone()).await;
    assert_eq!(error.unwrap_err(), LoopError::EmptyContext);
    let note = Extension { kind: "note".to_owned(), data: json!(1) };
    let mut answered = AgentContext::default();
    answered.messages.push(Message::assistant("Done.").into());
    // An extension is no message to respond to.
    answered.messages.push(AgentMessage::Extension(note));
    let error = agent_loop_continue(&mut answered, &config, tx.clone(), cancel.clone()).await;
    assert_eq!(error.unwrap_err(), LoopError::EndsOnAssistant);

    let prompts = || vec![AgentMessage::user("x")];
    let mut duplicate = with_tools([double(), double()]);
    let error = agent_loop(prompts(), &mut duplicate, &config, tx.clone(), cancel.clone()).await;
    assert_eq!(error.unwrap_err().to_string(), "tool `double`: another tool has the same name");
    let mut limited = provider.config();
    limited.limits.max_cost = Some("1".parse().unwrap());
    limited.model = model("unknown-model", None);
    let error = agent_loop(prompts(), &mut AgentContext::default(), &limited, tx, cancel).await;
    assert!(matches!(error, Err(LoopError::NoPrice { .. })));
    assert!(provider.bodies().is_empty());
}

#[tokio::test(start_paused = true)]
async fn loop_id_consists_of_session_config_and_number() {
    let provider = Provider::new([Reply::Text("1"), Reply::Text("2"), Reply::Text("3")]);
    let mut context = AgentContext::default().with_session(bakeoff_agent::Session::named("ses_1"));
    let plain = provider.config();
    let mut thinking = provider.config();
    thinking.request.thinking = Some(bakeoff_core::Thinking::Effort("high".to_owned()));
    let mut named = provider.config();
    named.config_id = Some("warm.one".to_owned());
    let mut ids = Vec::new();
    for config in [&plain, &thinking, &named] {
        let (tx, cancel) = no_events();
        let prompts = vec![AgentMessage::user("x")];
        let end = agent_loop(prompts, &mut context, config, tx, cancel).await.unwrap();
        ids.push(end.loop_id);
    }
    let texts: Vec<&str> = ids.iter().map(bakeoff_agent::LoopId::as_str).collect();
    assert_eq!(
        texts,
        ["ses_1.openai.gpt-4o-mini.1", "ses_1.openai.gpt-4o-mini.thinking.2", "ses_1.warm.one.3"]
    );
    assert_eq!(ids[2].segment(), "warm.one");
    let mut slugged = provider.config();
    slugged.model = model("gpt-4.1/mini", None);
    assert_eq!(slugged.segment(), "openai.gpt-4-1-mini");
}

#[tokio::test(start_paused = true)]
async fn each_loop_is_a_sample_of_its_own() {
    let client =
        std::sync::Arc::new(bakeoff_llm::Client::new(bakeoff_llm::ClientConfig::default()));
    let model = bakeoff_llm::ModelConfig::named("sim", "prose");
    let model = bakeoff_llm::Model::resolve(&model, &|_| None).unwrap();
    let mut answers = std::collections::BTreeSet::new();
    for trial in 0..8 {
        // Loops of one session, in each of several trials.
        let session = bakeoff_agent::Session::named("s");
        for _ in 0..8 {
            let mut config = bakeoff_agent::AgentLoopConfig::new(&client, model.clone());
            config.scope.trial = trial;
            let mut context = AgentContext::default().with_session(session.clone());
            let (tx, cancel) = no_events();
            let prompts = vec![AgentMessage::user("x")];
            let end = agent_loop(prompts, &mut context, &config, tx, cancel).await.unwrap();
            answers.insert(end.answer());
        }
    }
    // Simulated texts can be equal by chance, but only a few of them.
    assert!(answers.len() > 60, "{} different answers", answers.len());
}

#[tokio::test(start_paused = true)]
async fn config_replaces_instructions_tools_and_wording() {
    let provider = Provider::new([Reply::Text("4"), Reply::Text("6")]);
    let config = provider
        .config()
        .system_prompt("Be exact.")
        .prompt_template(PromptTemplate::new("Calculate: {{ prompt }}"))
        .tools(vec![double()])
        .thinking("high");
    let image = Content::Image {
        source: ImageSource::Base64 { media_type: "image/png".to_owned(), data: "AA==".to_owned() },
    };
    let mut context = AgentContext::default().with_system_prompt("Be kind.");
    let content = vec![Content::text("2+2"), image];
    let prompts = vec![AgentMessage::Llm(Message::User { content })];
    let (tx, mut rx) = event_channel(100);
    let end = agent_loop(prompts.clone(), &mut context, &config, tx, CancellationToken::new());
    assert_eq!(end.await.unwrap().answer(), "4");
    let body = &provider.bodies()[0];
    assert_eq!(body["messages"][0]["content"], "Be exact.");
    assert_eq!(body["messages"][1]["content"][0]["text"], "Calculate: 2+2");
    assert_eq!(body["messages"][1]["content"].as_array().unwrap().len(), 2, "with the image");
    assert_eq!(body["tools"][0]["function"]["name"], "double");
    assert_eq!(body["reasoning_effort"], "high");
    // The conversation has the words of the user, and the events have what was sent.
    assert_eq!(context.messages[0], prompts[0]);
    let mut sent = Vec::new();
    while let Some(event) = rx.recv().await {
        if let AgentEvent::MessageEnd { message, .. } = event {
            sent.push(message.text());
        }
    }
    assert_eq!(sent, ["Calculate: 2+2", "4"]);
    // Earlier prompts are sent as the user wrote them.
    let (tx, cancel) = no_events();
    let prompts = vec![AgentMessage::user("3+3")];
    agent_loop(prompts, &mut context, &config, tx, cancel).await.unwrap();
    let texts: Vec<String> = provider.messages(1)[1..]
        .iter()
        .map(|message| match &message["content"] {
            Value::Array(parts) => parts[0]["text"].as_str().unwrap().to_owned(),
            text => text.as_str().unwrap().to_owned(),
        })
        .collect();
    assert_eq!(texts, ["2+2", "4", "Calculate: 3+3"]);
}

#[tokio::test(start_paused = true)]
async fn unusable_template_is_an_error_and_no_call_is_made() {
    let provider = Provider::new([]);
    let broken = PromptTemplate::from_fn(|prompt| Err(format!("no field for {prompt:?}")));
    let config = provider.config().prompt_template(broken);
    let mut context = AgentContext::default();
    let (tx, cancel) = no_events();
    let prompts = vec![AgentMessage::user("x")];
    let error = agent_loop(prompts, &mut context, &config, tx, cancel).await.unwrap_err();
    assert_eq!(error.to_string(), "prompt template: no field for \"x\"");
    assert!(context.messages.is_empty());
    context.messages.push(AgentMessage::user("x"));
    let (tx, cancel) = no_events();
    let error = agent_loop_continue(&mut context, &config, tx, cancel).await.unwrap_err();
    assert_eq!(error, LoopError::NoPromptForTemplate);
    assert!(provider.bodies().is_empty());
}
