//! Races that are killed while judges reply.

use crate::support::TestClient;
use bakeoff_agent::{AgentContext, AgentMessage, EventSender, Session};
use bakeoff_core::Redactor;
use bakeoff_race::{
    EvaluationStrategy, PairwiseEvaluation, PanelEvaluation, ParallelLoopResult, Race, SessionFile,
};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

const MODELS: &str = r#"
    poor = { default = "Poor. [quality 0.20]" }
    fair = { default = "Fair. [quality 0.50]" }
    good = { default = "Good. [quality 0.80]" }
    left = { bias = 10.0 }
    stubborn = { answers = [{ when = "Your reply does not end with the number", answer = "2" }], default = "hm" }
"#;

const BRANCHES: [&str; 3] = ["poor", "good", "fair"];

async fn run(race: Race, file: &mut SessionFile, session: &Session) -> ParallelLoopResult {
    let (tx, cancel) = (EventSender::disabled(), CancellationToken::new());
    let result = race.run(tx, cancel, &mut |branch| file.record_branch(branch).unwrap()).await;
    file.record_end(session, &result).unwrap();
    result.unwrap()
}

fn records(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Returns the loop ids of all judges that were called, in order.
fn judge_loops(records: &[Value]) -> Vec<String> {
    let starts = records.iter().filter(|record| record["event"] == "judge_started");
    starts.map(|record| record["loop_id"].as_str().unwrap().to_owned()).collect()
}

fn replies(records: &[Value]) -> usize {
    records.iter().filter(|record| record["event"] == "judge_replied").count()
}

/// Kills a race after each line of its session file and resumes it.
async fn resumed_race_pays_for_no_reply_twice(
    strategy: impl Fn(&TestClient) -> Arc<dyn EvaluationStrategy>,
) {
    let client = TestClient::new(MODELS);
    let folder = tempfile::tempdir().unwrap();
    let whole_path = folder.path().join("whole.jsonl");
    let context = AgentContext::default().with_session(Session::named("s"));
    let mut file = SessionFile::create(&whole_path, &context, Redactor::default()).unwrap();
    let prompts = vec![AgentMessage::user("What is it?")];
    let configs = client.configs(&BRANCHES);
    let race = Race::new(prompts, context.clone(), configs, strategy(&client)).unwrap();
    file.record_start(&race, json!(null)).unwrap();
    let whole = run(race, &mut file, &context.session).await;
    file.finish().unwrap();
    let whole_records = records(&whole_path);
    let calls = judge_loops(&whole_records).len();
    assert!(calls > 4, "{calls}");
    let lines: Vec<String> = std::fs::read_to_string(&whole_path)
        .unwrap()
        .split_inclusive('\n')
        .map(str::to_owned)
        .collect();
    // The first two lines start session and race; the last one ends the race.
    for kept in 2..lines.len() {
        let path = folder.path().join(format!("killed-{kept}.jsonl"));
        std::fs::write(&path, lines[..kept].concat()).unwrap();
        let killed = &whole_records[..kept];
        let (mut file, recorded) = SessionFile::open(&path).unwrap();
        let context = recorded.context;
        let unfinished = recorded.unfinished.unwrap();
        let configs = client.configs(&BRANCHES);
        let race = Race::resume(unfinished, context.clone(), configs, strategy(&client)).unwrap();
        let result = run(race, &mut file, &context.session).await;
        file.finish().unwrap();
        assert_eq!(result.selected_index, whole.selected_index, "{kept}");
        assert_eq!(result.verdict.kind, whole.verdict.kind, "{kept}");
        assert_eq!(result.verdict.reasons, whole.verdict.reasons, "{kept}");
        assert_eq!(result.total_usage, whole.total_usage, "{kept}");
        assert_eq!(result.verdict.ballots.len(), whole.verdict.ballots.len());
        let all = records(&path);
        let loops = judge_loops(&all);
        let paid_again = loops.len() - judge_loops(killed).len();
        assert_eq!(paid_again, calls - replies(killed), "only calls without a reply: {kept}");
        let unique: BTreeSet<&String> = loops.iter().collect();
        assert_eq!(unique.len(), loops.len(), "ids are not reused: {loops:?}");
        assert!(SessionFile::open(&path).unwrap().1.unfinished.is_none());
    }
}

#[tokio::test]
async fn killed_panel_resumes() {
    resumed_race_pays_for_no_reply_twice(|client| {
        let judges = ["judge", "stubborn", "left", "judge"].map(|name| client.judge(name));
        Arc::new(PanelEvaluation::new(judges.into()).quorum(1))
    })
    .await;
}

#[tokio::test]
async fn killed_judge_resumes() {
    resumed_race_pays_for_no_reply_twice(|client| Arc::new(client.judge("left"))).await;
}

#[tokio::test]
async fn killed_tournament_resumes() {
    resumed_race_pays_for_no_reply_twice(|client| {
        Arc::new(PairwiseEvaluation { judge: client.judge("judge") })
    })
    .await;
}
