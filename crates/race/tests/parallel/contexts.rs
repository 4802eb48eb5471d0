//! Base contexts of branches, and the results of races.

use crate::support::{ClosureStrategy, TestClient, UnusedTool, choose, race};
use bakeoff_agent::{
    AgentContext, AgentMessage, ContextConfig, EventSender, LoopError, LoopStatus, PromptTemplate,
    Session, Tool,
};
use bakeoff_core::{Message, Usage};
use bakeoff_race::{
    ParallelLoopOutcome, PickFirstEvaluation, RaceError, TransparentEvaluation, agent_loop_parallel,
};
use std::sync::{Arc, Mutex};
use tokio_util::sync::CancellationToken;

fn conversation() -> AgentContext {
    let mut context = AgentContext::default().with_system_prompt("Be kind.");
    context.messages.push(Message::user("Hello").into());
    context.messages.push(Message::assistant("Hi").into());
    context
}

#[tokio::test(start_paused = true)]
async fn branches_start_from_the_same_context_and_share_tools() {
    let client = TestClient::new("");
    let tool: Arc<dyn Tool> = Arc::new(UnusedTool::default());
    let base = conversation().with_tools(vec![Arc::clone(&tool)]);
    let recorded: Arc<Mutex<Vec<ParallelLoopOutcome>>> = Arc::default();
    let strategy = ClosureStrategy({
        let recorded = Arc::clone(&recorded);
        move |_: &[AgentMessage], outcomes: &[ParallelLoopOutcome]| {
            *recorded.lock().unwrap() = outcomes.to_vec();
            choose(1)
        }
    });
    let prompts = vec![AgentMessage::user("go")];
    let result = agent_loop_parallel(
        prompts,
        base.clone(),
        client.configs(&["a", "b", "echo"]),
        Arc::new(strategy),
        EventSender::disabled(),
        CancellationToken::new(),
    )
    .await
    .unwrap();
    let recorded = recorded.lock().unwrap();
    assert_eq!(recorded.len(), 3);
    for (index, outcome) in recorded.iter().enumerate() {
        assert_eq!((outcome.config_index, outcome.original_context_len), (index, 2));
        assert_eq!(outcome.context.messages[..2], base.messages);
        assert_eq!(outcome.context.messages[2], AgentMessage::user("go"));
        assert_eq!(outcome.context.messages[3..], outcome.new_messages);
        assert_eq!(outcome.context.system_prompt, "Be kind.");
        assert!(Arc::ptr_eq(&outcome.context.tools[0], &tool));
    }
    assert_eq!(result.selected_index, 1);
    assert_eq!(result.selected_context.messages, recorded[1].context.messages);
    assert_eq!(result.selected_messages, recorded[1].new_messages);
    let others: Vec<usize> = result.all_outcomes.iter().map(|other| other.config_index).collect();
    assert_eq!(others, [0, 2]);
    assert_eq!(base.messages.len(), 2, "the caller's context is unchanged");
}

#[tokio::test(start_paused = true)]
async fn without_prompts_branches_answer_the_last_message() {
    let client = TestClient::new("");
    let mut base = conversation();
    base.messages.push(AgentMessage::user("And now?"));
    let strategy = ClosureStrategy(|prompts: &[AgentMessage], outcomes: &[ParallelLoopOutcome]| {
        assert!(prompts.is_empty());
        assert!(outcomes.iter().all(|outcome| outcome.original_context_len == 3));
        choose(0)
    });
    let (tx, cancel) = (EventSender::disabled(), CancellationToken::new());
    let configs = client.configs(&["echo", "echo"]);
    let result =
        agent_loop_parallel(Vec::new(), base, configs, Arc::new(strategy), tx, cancel).await;
    let result = result.unwrap();
    assert_eq!(result.answer(), "And now?");
    assert_eq!(result.selected_context.messages.len(), 4);
}

#[tokio::test(start_paused = true)]
async fn invalid_race_is_a_typed_error_before_any_call() {
    let client = TestClient::new("");
    let start =
        |context: AgentContext, prompts: Vec<AgentMessage>, names: &'static [&'static str]| {
            let strategy = Arc::new(PickFirstEvaluation);
            let (tx, cancel) = (EventSender::disabled(), CancellationToken::new());
            agent_loop_parallel(prompts, context, client.configs(names), strategy, tx, cancel)
        };
    let prompt = || vec![AgentMessage::user("x")];
    let error = start(AgentContext::default(), prompt(), &[]).await.unwrap_err();
    assert!(matches!(error, RaceError::NoConfigs), "{error:?}");
    let error = start(AgentContext::default(), Vec::new(), &["a"]).await.unwrap_err();
    assert!(matches!(error, RaceError::Context(LoopError::EmptyContext)), "{error:?}");
    let error = start(conversation(), Vec::new(), &["a"]).await.unwrap_err();
    assert!(matches!(error, RaceError::Context(LoopError::EndsOnAssistant)), "{error:?}");
    let error = race(client.configs(&["a", "b"]), TransparentEvaluation).await.unwrap_err();
    assert_eq!(error.to_string(), "transparent: needs exactly one branch, got 2");
    assert_eq!(client.calls(), 0);

    let result = race(client.configs(&["a"]), TransparentEvaluation).await.unwrap();
    assert_eq!((result.selected_index, result.all_outcomes.len(), client.calls()), (0, 0, 1));
}

#[tokio::test(start_paused = true)]
async fn loop_ids_are_unique_across_races_of_a_session() {
    let client = TestClient::new("");
    let mut context = AgentContext::default().with_session(Session::named("ses_1"));
    let mut ids = Vec::new();
    for _ in 0..2 {
        let prompts = vec![AgentMessage::user("x")];
        let (tx, cancel) = (EventSender::disabled(), CancellationToken::new());
        let strategy = Arc::new(PickFirstEvaluation);
        let configs = client.configs(&["a", "b.c"]);
        let result = agent_loop_parallel(prompts, context, configs, strategy, tx, cancel).await;
        let result = result.unwrap();
        ids.push(result.selected.loop_id.to_string());
        ids.extend(result.all_outcomes.iter().map(|other| other.loop_id.to_string()));
        context = result.selected_context;
    }
    assert_eq!(ids, ["ses_1.sim.a.1", "ses_1.sim.b-c.2", "ses_1.sim.a.3", "ses_1.sim.b-c.4"]);
}

#[tokio::test(start_paused = true)]
async fn compaction_does_not_change_the_winner() {
    let client = TestClient::new("");
    let mut base = AgentContext::default();
    for number in 0..50 {
        base.messages.push(Message::user(format!("{number} {}", "text ".repeat(50))).into());
        base.messages.push(Message::assistant("noted").into());
    }
    let before = base.messages.clone();
    let mut config = client.config("a");
    config.context_config = Some(ContextConfig::new(500));
    let prompts = vec![AgentMessage::user("x")];
    let (tx, cancel) = (EventSender::disabled(), CancellationToken::new());
    let strategy = Arc::new(TransparentEvaluation);
    let result =
        agent_loop_parallel(prompts, base, vec![config], strategy, tx, cancel).await.unwrap();
    // The simulated provider counts the tokens it receives.
    assert!(result.selected.usage.input < 500, "{:?}", result.selected.usage);
    assert_eq!(result.selected_context.messages[..100], before);
    assert_eq!(result.selected_context.messages.len(), 102);
}

#[tokio::test(start_paused = true)]
async fn session_continues_with_the_winner() {
    let client = TestClient::new("");
    let mut result =
        race(client.configs(&["a", "echo"]), ClosureStrategy(|_: &[_], _: &[_]| choose(1))).await;
    let result = result.as_mut().unwrap();
    let (tx, cancel) = (EventSender::disabled(), CancellationToken::new());
    let next = Message::user("And then?");
    let end = result.continue_with(next, &client.config("echo"), tx, cancel).await.unwrap();
    assert_eq!(end.status, LoopStatus::Completed);
    let texts: Vec<String> = result
        .selected_context
        .messages
        .iter()
        .filter_map(|message| message.as_llm().map(Message::text))
        .collect();
    assert_eq!(texts, ["go", "go", "And then?", "And then?"]);
}

#[tokio::test(start_paused = true)]
async fn total_usage_is_the_sum_of_branches_and_evaluation() {
    let client = TestClient::new("");
    let judge = Usage { input: 1_000, output: 7, ..Usage::default() };
    let strategy = ClosureStrategy(move |_: &[_], _: &[_]| (choose(0).0, judge));
    let result = race(client.configs(&["a", "b", "fault-400"]), strategy).await.unwrap();
    let mut sum = judge;
    sum += result.selected.usage;
    result.all_outcomes.iter().for_each(|other| sum += other.usage);
    assert_eq!((result.total_usage, result.evaluation_usage), (sum, judge));
    assert!(result.selected.usage.total() > 0 && result.all_outcomes[0].usage.total() > 0);
}

/// Two wordings of one prompt: the branches receive different texts, and the conversation has the original one.
#[tokio::test(start_paused = true)]
async fn branches_have_prompts_of_their_own() {
    let client = TestClient::new("");
    let echo = |text: &str| client.config("echo").prompt_template(PromptTemplate::new(text));
    let configs =
        vec![echo("Shortly: {{ prompt }}"), echo("{{ prompt }} Explain."), client.config("echo")];
    let prompts = vec![AgentMessage::user("Why?")];
    let judged = ClosureStrategy(|prompts: &[AgentMessage], outcomes: &[ParallelLoopOutcome]| {
        assert_eq!(prompts, [AgentMessage::user("Why?")]);
        let answers: Vec<String> = outcomes.iter().map(ParallelLoopOutcome::answer).collect();
        assert_eq!(answers, ["Shortly: Why?", "Why? Explain.", "Why?"]);
        choose(1)
    });
    let (tx, cancel) = (EventSender::disabled(), CancellationToken::new());
    let context = AgentContext::default();
    let result =
        agent_loop_parallel(prompts, context, configs, Arc::new(judged), tx, cancel).await.unwrap();
    assert_eq!(result.selected_context.messages[0], AgentMessage::user("Why?"));
    assert_eq!(result.answer(), "Why? Explain.");
}

#[tokio::test(start_paused = true)]
async fn config_with_an_unusable_template_is_named_before_any_call() {
    let client = TestClient::new("");
    let template = PromptTemplate::from_fn(|_| Err("unknown field".to_owned()));
    let configs = vec![client.config("a"), client.config("a").prompt_template(template)];
    let error = race(configs, PickFirstEvaluation).await.unwrap_err();
    assert_eq!(error.to_string(), "config 2: prompt template: unknown field");
    assert_eq!(client.calls(), 0);
}
