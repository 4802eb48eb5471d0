//! `run.json`: what was asked for, so that a run can be gone on with, reported and compared.

use crate::Error;
use crate::aggregate::Measure;
use crate::folder::RUN_FILE;
use crate::run::RunConfig;
use bakeoff_agent::McpServer;
use bakeoff_core::{CaseIds, RunId, SCHEMA_VERSION, TargetName};
use bakeoff_stats::Threshold;
use bakeoff_suite::EarlyStop;
use bakeoff_suite::{Step, Suite, Target, TargetKind, describe_limits};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// The contents of `run.json`. Nothing here can hold a secret: keys and headers are left out.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RunFile {
    /// [`SCHEMA_VERSION`] of the writer.
    pub schema_version: u32,
    /// The run's id.
    pub run_id: RunId,
    /// Which Bakeoff made it.
    pub bakeoff_version: String,
    /// When it began, RFC 3339.
    pub started_at: String,
    /// The command line.
    pub arguments: Vec<String>,
    /// The seed.
    pub seed: u64,
    /// Whether cases lie directly in the folder.
    pub layout: Layout,
    /// The run whose outputs were judged anew, if that is what this is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scored_from: Option<RunId>,
    /// What was searched, if it is a search.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub select: Option<SelectRecord>,
    /// The suite as it was resolved.
    pub suite: SuiteRecord,
}

/// What was searched.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SelectRecord {
    /// The target whose roles are to be filled.
    pub target: String,
    /// Roles and their candidates.
    pub roles: Vec<(String, Vec<String>)>,
}

/// Where cases lie in a run's folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Layout {
    /// Directly: there is one target.
    Flat,
    /// In a folder for each target.
    ByTarget,
}

impl Layout {
    /// Returns the layout for a number of targets.
    pub(crate) fn of(targets: usize) -> Layout {
        if targets == 1 { Layout::Flat } else { Layout::ByTarget }
    }
}

/// A suite as it was resolved.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SuiteRecord {
    /// Its name.
    pub name: String,
    /// Its file, absolute.
    pub path: String,
    /// Changes when the file or a case changes.
    pub digest: String,
    /// Trials of each case.
    pub trials: u32,
    /// Share of a case's trials that must pass.
    pub threshold: f64,
    /// Share of a target's cases that must pass, where one is gated by.
    pub suite_threshold: Option<f64>,
    /// When cases are stopped early.
    pub early_stop: EarlyStop,
    /// At which risk.
    pub alpha: f64,
    /// Most trials at once.
    pub parallel: Option<u32>,
    /// How long a program or a model call may take.
    pub timeout_seconds: f64,
    /// The cases.
    pub cases: CasesRecord,
    /// What was chosen of it.
    pub chosen: ChosenRecord,
    /// The targets that were run.
    pub targets: Vec<serde_json::Value>,
    /// Ids of the checks.
    pub checks: Vec<String>,
    /// Digests of the parts that results depend on, by what people call them.
    pub parts: BTreeMap<String, String>,
}

/// The cases of a suite.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CasesRecord {
    /// Their file.
    pub path: String,
    /// Changes when any of them changes.
    pub digest: String,
    /// How many there are.
    pub total: usize,
    /// Ids of those that were chosen.
    pub chosen: Arc<CaseIds>,
}

/// What was chosen on the command line; empty lists mean all.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChosenRecord {
    /// Targets.
    pub targets: Vec<String>,
    /// Cases.
    pub cases: Vec<String>,
    /// Tags of cases.
    pub tags: Vec<String>,
}

impl RunFile {
    pub(crate) fn new(
        suite: &Suite,
        config: &RunConfig,
        measure: &Measure,
        run_id: RunId,
        started_at: String,
    ) -> RunFile {
        let absolute = |path: &Path| {
            let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
            path.display().to_string()
        };
        RunFile {
            schema_version: SCHEMA_VERSION,
            run_id,
            bakeoff_version: env!("CARGO_PKG_VERSION").to_owned(),
            started_at,
            arguments: config.arguments.clone(),
            seed: config.seed,
            layout: Layout::of(suite.targets.len()),
            scored_from: None,
            select: suite.select.as_ref().map(|plan| SelectRecord {
                target: plan.target.clone(),
                roles: plan.roles.clone(),
            }),
            suite: SuiteRecord {
                name: suite.name.clone(),
                path: absolute(&suite.path),
                digest: suite.digest.clone(),
                trials: measure.trials,
                threshold: measure.threshold.as_f64(),
                suite_threshold: measure.suite_threshold.map(Threshold::as_f64),
                early_stop: measure.early_stop,
                alpha: measure.alpha,
                parallel: suite.settings.parallel,
                timeout_seconds: suite.settings.timeout.as_secs_f64(),
                cases: CasesRecord {
                    path: absolute(suite.cases.path()),
                    digest: suite.survey.digest.clone(),
                    total: suite.survey.ids.len(),
                    chosen: Arc::clone(&measure.cases),
                },
                chosen: ChosenRecord {
                    targets: config.targets.clone(),
                    cases: config.cases.clone(),
                    tags: config.tags.clone(),
                },
                targets: suite.targets.iter().map(describe_target).collect(),
                checks: suite.checks.iter().map(|check| check.id.clone()).collect(),
                parts: suite.parts(),
            },
        }
    }

    /// Reads the `run.json` of a run.
    pub fn read(run: &Path) -> Result<RunFile, Error> {
        let path = run.join(RUN_FILE);
        let bytes =
            std::fs::read(&path).map_err(|source| Error::Read { path: path.clone(), source })?;
        let version = serde_json::from_slice::<serde_json::Value>(&bytes)
            .ok()
            .and_then(|value| value["schema_version"].as_u64());
        let usage = |message: String, hint: &str| Error::Usage {
            code: None,
            message: format!("{}: {message}", path.display()),
            hint: Some(hint.to_owned()),
        };
        match version {
            Some(version) if version > u64::from(SCHEMA_VERSION) => {
                return Err(usage(
                    format!("it was written by a newer Bakeoff (schema {version})"),
                    "use the version that wrote it, or a newer one",
                ));
            }
            _ => {}
        }
        serde_json::from_slice(&bytes).map_err(|error| {
            usage(
                format!("not what Bakeoff writes: {error}"),
                "the file is damaged, or an older Bakeoff wrote it",
            )
        })
    }

    /// What the run was measured by.
    pub fn measure(&self) -> Measure {
        let suite = &self.suite;
        let target = |target: &serde_json::Value| {
            let name = target["name"].as_str().unwrap_or_default();
            (TargetName::from(name), target["gate"].as_bool().unwrap_or(true))
        };
        Measure {
            targets: suite.targets.iter().map(target).collect(),
            cases: Arc::clone(&suite.cases.chosen),
            trials: suite.trials,
            threshold: self.threshold(),
            suite_threshold: self.suite_threshold(),
            early_stop: suite.early_stop,
            alpha: suite.alpha,
            seed: self.seed,
        }
    }

    /// The threshold, exactly as it was.
    pub fn threshold(&self) -> Threshold {
        exact(self.suite.threshold)
    }

    /// The share of cases, exactly as it was.
    pub fn suite_threshold(&self) -> Option<Threshold> {
        self.suite.suite_threshold.map(exact)
    }
}

/// The shortest decimal of a number that came from a decimal is that decimal again.
fn exact(share: f64) -> Threshold {
    share.to_string().parse().unwrap_or(Threshold::ALL)
}

fn describe_target(target: &Target) -> serde_json::Value {
    let mut value = json!({
        "name": target.name,
        "gate": target.gate,
        "prompt": target.prompt.source(),
    });
    if !target.roles.is_empty() {
        let roles = target.roles.iter().map(|(role, filler)| (role.as_str(), filler.as_str()));
        value["roles"] = json!(roles.collect::<BTreeMap<_, _>>());
    }
    if let Some(base) = &target.sample {
        value["combination_of"] = json!(base);
    }
    match &target.kind {
        TargetKind::Chain(chain) => {
            value["chain"] = chain.steps.iter().map(|step| describe_step(step)).collect()
        }
        TargetKind::Model(model) => {
            value["model"] = json!(model.label);
            value["system"] = json!(model.system.as_ref().map(|system| system.source()));
            value["limits"] = describe_limits(&model.model.limits());
            if let Some(agent) = &model.agent {
                let server = |server: &McpServer| {
                    let words = server.command.iter().map(|word| word.to_string_lossy());
                    json!({
                        "name": server.name,
                        "command": words.collect::<Vec<_>>(),
                        "tools": server.tools,
                    })
                };
                value["tools"] = json!(agent.tools);
                value["mcp"] = agent.mcp.iter().map(server).collect();
                value["max_turns"] = json!(agent.max_turns);
            }
        }
        TargetKind::Program(program) => {
            let words: Vec<_> = program.command.iter().map(|word| word.to_string_lossy()).collect();
            value["command"] = json!(words);
            if let Some((agent, model)) = &program.agent {
                value["agent"] = json!(agent.name());
                value["model"] = json!(model);
            }
        }
        TargetKind::Service(service) => value["url"] = json!(service.service.address()),
    }
    value
}

fn describe_step(step: &Step) -> serde_json::Value {
    json!({
        "name": step.name,
        "role": step.role,
        "model": step.model.label,
        "system": step.model.system.as_ref().map(|system| system.source()),
        "prompt": step.prompt.source(),
        "limits": describe_limits(&step.model.model.limits()),
    })
}
