//! `summary.json`: the summary, and at the top level the fields that FastSkill expects there.
//!
//! For a single target they are those of the target; for a FastSkill project with several agents they combine
//! all agents, each of which also has a file of its own.

use crate::case_files::{CaseFiles, planned_pass_rate};
use crate::trial_record::TrialRecord;
use bakeoff_core::{CaseId, CaseList, Status, Summary, TargetSummary, Verdict};
use bakeoff_suite::{Suite, TargetKind};
use serde::Serialize;
use std::path::Path;

/// Contents of the file.
#[derive(Serialize)]
pub(crate) struct SummaryFile<'a> {
    #[serde(flatten)]
    summary: &'a Summary,
    #[serde(flatten)]
    target: Option<TargetFields<'a>>,
}

/// Fields of FastSkill.
#[derive(Serialize)]
pub(crate) struct TargetFields<'a> {
    target: String,
    suite_pass: bool,
    suite_pass_rate: f64,
    agent: Option<String>,
    model: Option<&'a str>,
    total_cases: u64,
    passed: u64,
    failed: u64,
    trials_per_case: u32,
    parallel: Option<u32>,
    pass_threshold: f64,
    run_dir: String,
    checks_path: Option<String>,
    skill_project_root: Option<String>,
    cases: Cases<'a>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Cases<'a> {
    /// Cases of a suite.
    Suite(&'a CaseList),
    /// Cases of a FastSkill project.
    Project(Vec<ProjectCase<'a>>),
}

/// Case in FastSkill's format.
#[derive(Serialize)]
struct ProjectCase<'a> {
    id: CaseId,
    /// Agent, where cases of several agents are together.
    #[serde(skip_serializing_if = "Option::is_none")]
    agent: Option<&'a str>,
    status: Status,
    command_count: Option<u64>,
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    pass_count: u32,
    total_trials: u32,
    pass_rate: f64,
    trials: &'a [TrialRecord],
}

impl<'a> SummaryFile<'a> {
    pub(crate) fn new(
        summary: &'a Summary,
        suite: &'a Suite,
        folder: &Path,
        cases: &'a CaseFiles,
    ) -> SummaryFile<'a> {
        let target = match summary.targets.as_slice() {
            [target] => Some(TargetFields::of_target(target, suite, folder, cases)),
            targets if suite.project.is_some() => {
                TargetFields::combine(summary.verdict, targets, suite, folder, cases)
            }
            _ => None,
        };
        SummaryFile { summary, target }
    }
}

impl<'a> TargetFields<'a> {
    /// Returns the fields of one target. `cases` has the trials of a project.
    pub(crate) fn of_target(
        target: &'a TargetSummary,
        suite: &'a Suite,
        folder: &Path,
        cases: &'a CaseFiles,
    ) -> TargetFields<'a> {
        let kind = suite.targets.iter().find(|one| one.name == target.target).map(|one| &one.kind);
        let (agent, model) = match kind {
            Some(TargetKind::Model(model)) => (None, Some(model.label.as_str())),
            Some(TargetKind::Program(program)) => match &program.agent {
                // The agents of a project keep the names that the user gave.
                Some((_, model)) if suite.project.is_some() => {
                    (Some(target.target.to_string()), model.as_deref())
                }
                Some((agent, model)) => (Some(agent.name().to_owned()), model.as_deref()),
                None => (None, None),
            },
            Some(TargetKind::Chain(_) | TargetKind::Service(_)) | None => (None, None),
        };
        let project = suite.project.as_ref();
        TargetFields {
            target: target.target.to_string(),
            suite_pass: target.verdict == Verdict::Passed,
            suite_pass_rate: target.suite_pass_rate,
            agent,
            model,
            total_cases: target.total_cases,
            passed: target.passed,
            failed: target.failed,
            trials_per_case: target.trials_per_case,
            parallel: suite.settings.parallel,
            pass_threshold: target.pass_threshold,
            run_dir: run_dir(folder, suite),
            checks_path: project
                .and_then(|project| Some(project.checks.as_ref()?.display().to_string())),
            skill_project_root: project.map(|project| project.root.display().to_string()),
            cases: match project {
                Some(_) => Cases::Project(project_cases(target, None, cases)),
                None => Cases::Suite(&target.cases),
            },
        }
    }

    /// Returns the fields of all agents of a project together; `None` if there are none.
    fn combine(
        verdict: Verdict,
        targets: &'a [TargetSummary],
        suite: &'a Suite,
        folder: &Path,
        cases: &'a CaseFiles,
    ) -> Option<TargetFields<'a>> {
        let names: Vec<&str> = targets.iter().map(|target| target.target.as_str()).collect();
        let sum = |count: fn(&TargetSummary) -> u64| targets.iter().map(count).sum::<u64>();
        let (passed, total_cases) = (sum(|one| one.passed), sum(|one| one.total_cases));
        let of_agent =
            |target: &'a TargetSummary| project_cases(target, Some(target.target.as_str()), cases);
        Some(TargetFields {
            target: names.join(", "),
            suite_pass: verdict == Verdict::Passed,
            suite_pass_rate: passed as f64 / total_cases.max(1) as f64,
            agent: Some(names.join(", ")),
            total_cases,
            passed,
            failed: sum(|one| one.failed),
            cases: Cases::Project(targets.iter().flat_map(of_agent).collect()),
            ..TargetFields::of_target(targets.first()?, suite, folder, cases)
        })
    }
}

/// Returns the folder of the run or of an agent; absolute for a FastSkill project, as its other paths.
fn run_dir(folder: &Path, suite: &Suite) -> String {
    let absolute = suite.project.as_ref().and_then(|_| folder.canonicalize().ok());
    absolute.unwrap_or_else(|| folder.to_owned()).display().to_string()
}

fn project_cases<'a>(
    target: &TargetSummary,
    agent: Option<&'a str>,
    cases: &'a CaseFiles,
) -> Vec<ProjectCase<'a>> {
    let case = |case: bakeoff_core::CaseSummary| ProjectCase {
        trials: cases.trials(&target.target, case.id.as_str()),
        pass_rate: planned_pass_rate(&case),
        id: case.id,
        agent,
        status: case.status,
        command_count: case.command_count,
        input_tokens: case.input_tokens,
        output_tokens: case.output_tokens,
        pass_count: case.pass_count,
        total_trials: case.total_trials,
    };
    target.cases.iter().map(case).collect()
}
