//! `summary.json`: the summary, and for a single target also its fields at the top level, where FastSkill
//! expects them.

use bakeoff_core::{CaseList, Summary, TargetSummary, Verdict};
use bakeoff_suite::{Suite, TargetKind};
use serde::Serialize;
use std::path::Path;

/// Contents of the file.
#[derive(Serialize)]
pub(crate) struct SummaryFile<'a> {
    #[serde(flatten)]
    summary: &'a Summary,
    #[serde(flatten)]
    target: Option<SingleTarget<'a>>,
}

#[derive(Serialize)]
struct SingleTarget<'a> {
    target: &'a str,
    suite_pass: bool,
    suite_pass_rate: f64,
    agent: Option<&'a str>,
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
    cases: &'a CaseList,
}

impl<'a> SummaryFile<'a> {
    pub(crate) fn new(summary: &'a Summary, suite: &'a Suite, folder: &Path) -> SummaryFile<'a> {
        let target = match summary.targets.as_slice() {
            [target] => Some(single_target(target, suite, folder)),
            _ => None,
        };
        SummaryFile { summary, target }
    }
}

fn single_target<'a>(
    target: &'a TargetSummary,
    suite: &'a Suite,
    folder: &Path,
) -> SingleTarget<'a> {
    let kind = suite.targets.iter().find(|one| one.name == target.target).map(|one| &one.kind);
    let (agent, model) = match kind {
        Some(TargetKind::Model(model)) => (None, Some(model.label.as_str())),
        Some(TargetKind::Program(program)) => match &program.agent {
            Some((agent, model)) => (Some(agent.name()), model.as_deref()),
            None => (None, None),
        },
        Some(TargetKind::Chain(_) | TargetKind::Service(_)) | None => (None, None),
    };
    let project = suite.project.as_ref();
    SingleTarget {
        target: target.target.as_str(),
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
        run_dir: folder.display().to_string(),
        checks_path: project
            .and_then(|project| Some(project.checks.as_ref()?.display().to_string())),
        skill_project_root: project.map(|project| project.root.display().to_string()),
        cases: &target.cases,
    }
}
