//! Session files.

use crate::support::{ClosureStrategy, TestClient, UnusedTool, choose};
use bakeoff_agent::{AgentContext, AgentMessage, EventSender, LoopStatus, Session, Tool};
use bakeoff_core::{Message, Redactor};
use bakeoff_race::{
    EvaluationStrategy, ParallelLoopOutcome, PickFirstEvaluation, Race, RaceError, SessionError,
    SessionFile, UnfinishedRace,
};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

const NAMES: [&str; 3] = ["a", "echo", "b"];

fn start(path: &Path) -> (SessionFile, AgentContext) {
    let context = AgentContext::default()
        .with_system_prompt("Be kind.")
        .with_session(Session::named("ses_1"));
    (SessionFile::create(path, &context, Redactor::default()).unwrap(), context)
}

/// Runs a race and records it, until it ends or `max` branches have ended.
async fn run(
    file: &mut SessionFile,
    context: &AgentContext,
    race: Race,
    max: usize,
) -> Result<bakeoff_race::ParallelLoopResult, RaceError> {
    let cancel = CancellationToken::new();
    let mut ended = 0;
    let stop = cancel.clone();
    let result = race
        .run(EventSender::disabled(), cancel, &mut |outcome| {
            if ended < max {
                file.record_branch(outcome).unwrap();
                ended += 1;
            }
            if ended == max {
                stop.cancel();
            }
        })
        .await;
    file.record_end(&context.session, &result).unwrap();
    result
}

fn texts(context: &AgentContext) -> Vec<String> {
    context.messages.iter().filter_map(|message| message.as_llm().map(Message::text)).collect()
}

fn folder() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("session.jsonl");
    (folder, path)
}

fn select_second() -> Arc<dyn EvaluationStrategy> {
    Arc::new(ClosureStrategy(|_: &[AgentMessage], _: &[ParallelLoopOutcome]| choose(1)))
}

#[tokio::test(start_paused = true)]
async fn session_continues_with_the_winners_of_its_races() {
    let client = TestClient::new("");
    let (_folder, path) = folder();
    let (mut file, mut context) = start(&path);
    for (round, prompt) in ["one", "two"].into_iter().enumerate() {
        let prompts = vec![AgentMessage::user(prompt)];
        let configs = client.configs(&NAMES);
        let race = Race::new(prompts, context.clone(), configs, select_second()).unwrap();
        file.record_start(&race, json!({ "round": round })).unwrap();
        let result = run(&mut file, &context, race, usize::MAX).await.unwrap();
        context = result.selected_context;
        file.finish().unwrap();
        let (reopened, recorded) = SessionFile::open(&path).unwrap();
        file = reopened;
        assert_eq!(recorded.context.messages, context.messages);
        assert_eq!(recorded.context.system_prompt, "Be kind.");
        assert_eq!(recorded.context.session.id(), "ses_1");
        assert_eq!(recorded.context.session.loops(), 3 * (round as u32 + 1));
        let last = recorded.last.unwrap();
        assert_eq!((last.settings, last.selected_index), (json!({ "round": round }), 1));
        assert!(recorded.unfinished.is_none());
        context = recorded.context;
    }
    assert_eq!(texts(&context), ["one", "one", "two", "two"]);
}

#[tokio::test(start_paused = true)]
async fn resumed_race_skips_ended_branches() {
    let client = TestClient::new("");
    // The result without an interruption.
    let (_folder, path) = folder();
    let (mut file, context) = start(&path);
    let race = |context: &AgentContext| {
        let prompts = vec![AgentMessage::user("one")];
        Race::new(prompts, context.clone(), client.configs(&NAMES), select_second()).unwrap()
    };
    let whole = run(&mut file, &context, race(&context), usize::MAX).await.unwrap();

    for max in 1..=2 {
        let (_folder, path) = folder();
        let (mut file, context) = start(&path);
        let first = race(&context);
        file.record_start(&first, json!("settings")).unwrap();
        let error = run(&mut file, &context, first, max).await.unwrap_err();
        assert!(matches!(error, RaceError::Cancelled { .. }));
        file.finish().unwrap();
        // A torn line, as after a crash.
        let mut text = std::fs::read_to_string(&path).unwrap();
        text.push_str("{\"event\":\"branch_en");
        std::fs::write(&path, text).unwrap();

        let (mut file, recorded) = SessionFile::open(&path).unwrap();
        let unfinished = recorded.unfinished.unwrap();
        assert_eq!((unfinished.settings.as_str(), unfinished.ended.len()), (Some("settings"), max));
        let before = client.calls();
        let context = recorded.context;
        let configs = client.configs(&NAMES);
        let resumed = Race::resume(unfinished, context.clone(), configs, select_second()).unwrap();
        let result = run(&mut file, &context, resumed, usize::MAX).await.unwrap();
        assert_eq!(client.calls() - before, 3 - max);
        assert_eq!(result.selected_messages, whole.selected_messages);
        assert_eq!(result.total_usage, whole.total_usage);
        file.finish().unwrap();
        let (_, recorded) = SessionFile::open(&path).unwrap();
        assert_eq!(recorded.context.messages, whole.selected_context.messages);
        assert_eq!(recorded.context.session.loops(), 3);
    }
}

#[tokio::test(start_paused = true)]
async fn resumed_race_has_the_callers_tools_and_session() {
    let client = TestClient::new("");
    let (_folder, path) = folder();
    // The id contains a dot, which is also the separator in loop ids.
    let context = AgentContext::default().with_session(Session::named("user.42"));
    let mut file = SessionFile::create(&path, &context, Redactor::default()).unwrap();
    let prompts = vec![AgentMessage::user("one")];
    let first =
        Race::new(prompts, context.clone(), client.configs(&NAMES), select_second()).unwrap();
    file.record_start(&first, json!(null)).unwrap();
    run(&mut file, &context, first, 2).await.unwrap_err();
    file.finish().unwrap();

    let (mut file, recorded) = SessionFile::open(&path).unwrap();
    let tool: Arc<dyn Tool> = Arc::new(UnusedTool::default());
    let context = recorded.context.with_tools(vec![Arc::clone(&tool)]);
    let unfinished = recorded.unfinished.unwrap();
    let segments: Vec<&str> = unfinished.loop_ids.iter().map(|id| id.segment()).collect();
    assert_eq!(segments, ["sim.a", "sim.echo", "sim.b"]);
    let resumed =
        Race::resume(unfinished, context.clone(), client.configs(&NAMES), select_second());
    let resumed = resumed.unwrap();
    // The start is already recorded.
    file.record_start(&resumed, json!(null)).unwrap();
    let result = run(&mut file, &context, resumed, usize::MAX).await.unwrap();
    assert!(Arc::ptr_eq(&result.selected_context.tools[0], &tool));
    assert!(result.all_outcomes.iter().all(|other| other.context.tools.len() == 1));
    assert_eq!(result.selected_context.session.loops(), context.session.loops());
    file.finish().unwrap();
    assert!(SessionFile::open(&path).is_ok());
}

/// A race that is interrupted during judging.
#[tokio::test(start_paused = true)]
async fn loop_ids_of_judges_are_not_reused_after_an_interruption() {
    let client = TestClient::new("");
    let (_folder, path) = folder();
    let (mut file, context) = start(&path);
    let judging =
        Arc::new(ClosureStrategy(|_: &[AgentMessage], outcomes: &[ParallelLoopOutcome]| {
            // A judge does this for its loop.
            outcomes[0].context.session.next_loop("sim.judge");
            choose(0)
        }));
    let prompts = vec![AgentMessage::user("one")];
    let race = Race::new(prompts, context.clone(), client.configs(&["a"]), judging).unwrap();
    file.record_start(&race, json!(null)).unwrap();
    // Cancelled when the only branch has ended, so it is not judged.
    run(&mut file, &context, race, 1).await.unwrap_err();
    context.session.next_loop("sim.judge");
    let cancelled = Err(RaceError::Cancelled { outcomes: Vec::new(), total_usage: usage(7) });
    file.record_end(&context.session, &cancelled).unwrap();
    file.finish().unwrap();
    let (mut file, recorded) = SessionFile::open(&path).unwrap();
    assert_eq!(recorded.context.session.loops(), 2);
    let unfinished = recorded.unfinished.unwrap();
    file.record_discard(&recorded.context.session, &unfinished).unwrap();
    file.finish().unwrap();
    let (_, recorded) = SessionFile::open(&path).unwrap();
    assert_eq!((recorded.context.session.loops(), recorded.races), (2, 1));
}

fn usage(input: u64) -> bakeoff_core::Usage {
    bakeoff_core::Usage { input, ..bakeoff_core::Usage::default() }
}

#[tokio::test(start_paused = true)]
async fn interrupted_race_does_not_resume_with_other_configs() {
    let client = TestClient::new("");
    let context = AgentContext::default().with_session(Session::named("s"));
    let unfinished = UnfinishedRace {
        prompts: vec![AgentMessage::user("x")],
        loop_ids: vec![context.session.next_loop("sim.a"), context.session.next_loop("sim.b")],
        settings: json!(null),
        ended: Vec::new(),
    };
    let strategy = Arc::new(PickFirstEvaluation);
    let error = Race::resume(unfinished, context, client.configs(&["a", "c"]), strategy);
    assert_eq!(
        error.unwrap_err().to_string(),
        "the interrupted race has the models sim.a, sim.b, not sim.a, sim.c"
    );
}

#[tokio::test(start_paused = true)]
async fn race_without_a_winner_does_not_change_the_conversation() {
    let client = TestClient::new("");
    let (_folder, path) = folder();
    let (mut file, context) = start(&path);
    let prompts = vec![AgentMessage::user("one")];
    let configs = client.configs(&["fault-400"]);
    let strategy = Arc::new(PickFirstEvaluation);
    let race = Race::new(prompts, context.clone(), configs, strategy).unwrap();
    file.record_start(&race, json!(null)).unwrap();
    run(&mut file, &context, race, usize::MAX).await.unwrap_err();
    file.finish().unwrap();
    let (_, recorded) = SessionFile::open(&path).unwrap();
    assert!(recorded.context.messages.is_empty() && recorded.unfinished.is_none());
    assert_eq!((recorded.races, recorded.last), (1, None));
    let lines = std::fs::read_to_string(&path).unwrap();
    assert!(lines.contains("all branches failed: ses_1.sim.fault-400.1: 400: The request is not"));
    let failed = LoopStatus::Failed(bakeoff_agent::LoopFailure {
        kind: bakeoff_core::ErrorKind::InvalidRequest,
        message: "400: The request is not valid.".to_owned(),
    });
    assert!(lines.contains(&serde_json::to_string(&failed).unwrap()));
}

#[test]
fn file_that_is_not_a_session_is_rejected_and_unchanged() {
    let (_folder, path) = folder();
    let newer =
        r#"{"event":"session_started","schema_version":99,"session_id":"s","system_prompt":""}"#;
    let started =
        r#"{"event":"session_started","schema_version":1,"session_id":"s","system_prompt":""}"#;
    let race = r#"{"event":"race_started","prompts":[],"loop_ids":["s.a.1"],"strategy":"x","settings":null}"#;
    let branch = r#"{"event":"branch_ended","config_index":0,"loop_id":"s.b.1","status":"completed","new_messages":[],"usage":{"input":0,"output":0},"elapsed_ms":1}"#;
    let end = r#"{"event":"race_ended","selected_index":0,"total_usage":{"input":0,"output":0},"loops":1}"#;
    let table = [
        (String::new(), "it has no complete line"),
        ("my notes, without a newline".to_owned(), "it has no complete line"),
        ("my notes\n".to_owned(), "its first line is not a session record"),
        (format!("{race}\n"), "its first record is not the start"),
        (format!("{newer}\n"), "newer Bakeoff (file format 99"),
        (format!("{started}\n{started}\n"), "line 2: another session starts"),
        (format!("{started}\n{branch}\n"), "line 2: a branch ends outside of a race"),
        (format!("{started}\n{race}\n{race}\n"), "line 3: a race starts before"),
        (format!("{started}\n{race}\n{branch}\n"), "line 3: s.b.1 is not a branch"),
        (format!("{started}\n{}\n", race.replace("s.a.1", "t.a.1")), "line 2: t.a.1 is not a loop"),
        (format!("{started}\n{race}\n{end}\n"), "line 3: the winner has not ended"),
        (format!("{started}\n{end}\n"), "line 2: a race ends that has not started"),
        (format!("{started}\nnonsense\n"), ":2: damaged line"),
    ];
    for (text, reason) in table {
        std::fs::write(&path, &text).unwrap();
        let error = SessionFile::open(&path).unwrap_err().to_string();
        assert!(error.contains(reason), "{text:?}: {error}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
    }
    std::fs::remove_file(&path).unwrap();
    assert!(matches!(SessionFile::open(&path), Err(SessionError::Journal(_))));
}

#[test]
fn session_has_a_single_writer() {
    let (_folder, path) = folder();
    let (_file, _) = start(&path);
    let error = SessionFile::open(&path).unwrap_err().to_string();
    assert!(error.contains("another process"), "{error}");
    let context = AgentContext::default();
    assert!(SessionFile::create(&path, &context, Redactor::default()).is_err(), "nor overwrite it");
}

#[test]
fn session_is_created_in_an_empty_file_but_not_in_a_device() {
    let (folder, path) = folder();
    std::fs::write(&path, "").unwrap();
    let (file, _) = start(&path);
    file.finish().unwrap();
    assert!(SessionFile::open(&path).is_ok());
    for other in [folder.path(), Path::new("/dev/null")] {
        let error = SessionFile::open(other).unwrap_err().to_string();
        assert!(error.ends_with("not a regular file"), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn secrets_are_not_written() {
    let client = TestClient::new("");
    let (_folder, path) = folder();
    let mut redactor = Redactor::default();
    redactor.add("sk-secret-secret");
    let context = AgentContext::default().with_system_prompt("The key is sk-secret-secret.");
    let mut file = SessionFile::create(&path, &context, redactor.clone()).unwrap();
    for _ in 0..2 {
        let prompts = vec![AgentMessage::user("I said sk-secret-secret.")];
        let configs = client.configs(&["echo"]);
        let strategy = Arc::new(PickFirstEvaluation);
        let race = Race::new(prompts, context.clone(), configs, strategy).unwrap();
        file.record_start(&race, json!("sk-secret-secret")).unwrap();
        run(&mut file, &context, race, usize::MAX).await.unwrap();
        file.finish().unwrap();
        file = SessionFile::open(&path).unwrap().0;
        file.set_redactor(redactor.clone());
    }
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(!text.contains("sk-secret") && text.contains("I said [redacted]."), "{text}");
}
