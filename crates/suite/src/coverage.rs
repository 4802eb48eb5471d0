//! Validation of cases together with checks: checks of cases, tags of checks, judge models, and targets that
//! no check applies to.

use super::check_fields::CheckProblem;
use super::checks::{CheckReader, CheckSpec, default_judge};
use super::resolve;
use super::suite::LoadContext;
use super::targets::Target;
use super::tree::{Node, SourceText};
use crate::case::{Case, CaseSource, ProblemBuffer, Survey};
use crate::models::NamedModel;
use crate::problem::{Problem, Problems, SourcePosition, suggest};
use bakeoff_llm::Model;
use std::collections::{BTreeMap, BTreeSet};

/// Targets with the checks that apply to them.
pub(super) struct Coverage<'a> {
    pub(super) context: &'a LoadContext<'a>,
    pub(super) reader: &'a CheckReader,
    pub(super) checks: &'a [CheckSpec],
    pub(super) targets: &'a [Target],
    pub(super) models: &'a BTreeMap<String, NamedModel>,
}

/// Findings of one pass over all cases.
#[derive(Default)]
struct CaseScan {
    problems: ProblemBuffer,
    has_problems: bool,
    /// Tags of all cases.
    tags: BTreeSet<String>,
    /// Judge models of case checks, with the position of the first case that names them.
    judges: BTreeMap<String, Option<Box<SourcePosition>>>,
    /// First case without a check, by index of the target.
    unchecked: BTreeMap<usize, String>,
    /// Indices of the targets with a check for at least one case.
    checked: BTreeSet<usize>,
}

impl Coverage<'_> {
    /// Validates the checks of all cases and returns the judge models. Reads the cases only if needed.
    pub(super) fn validate(
        &self,
        root: &Node<'_, '_>,
        cases: &CaseSource,
        survey: &Survey,
        problems: &mut Problems<'_>,
    ) -> BTreeMap<String, Model> {
        let nodes = root.tables("check");
        let is_complete = self.checks.len() == nodes.len();
        let has_case_checks = survey.fields.contains("checks");
        let has_tags = self.checks.iter().any(|check| !check.tags.is_empty());
        let mut scan = CaseScan::default();
        if has_case_checks || has_tags || !self.all_checked() {
            self.scan(cases, &mut scan);
        }
        if is_complete && !scan.has_problems {
            self.report_unchecked(root, &scan, problems);
        }
        if has_tags {
            self.report_tags(&nodes, &scan.tags, problems);
        }
        let judges = self.judges(root, cases, &scan, problems);
        problems.extend(scan.problems.finish());
        judges
    }

    /// Returns whether each target is a program or has a check for all cases.
    fn all_checked(&self) -> bool {
        let is_checked = |target: &&Target| {
            let applies =
                |check: &&CheckSpec| check.tags.is_empty() && check.applies_to(target.base());
            self.checks.iter().any(|check| applies(&check))
        };
        self.targets.iter().all(|target| target.is_program() || is_checked(&target))
    }

    fn scan(&self, cases: &CaseSource, scan: &mut CaseScan) {
        let ids: BTreeSet<String> = self.checks.iter().map(|check| check.id.clone()).collect();
        // The survey has reported unreadable cases.
        for case in cases.iter().filter_map(Result::ok) {
            let case_checks = match self.case_checks(&case, &ids) {
                Ok(checks) => checks,
                Err(problems) => {
                    scan.has_problems = true;
                    for problem in problems {
                        scan.problems.push(case_problem(cases, &case, problem));
                    }
                    continue;
                }
            };
            for check in &case_checks {
                let position = || case.checks.as_ref().and_then(|checks| checks.position.clone());
                for (judge, _) in &check.judge_calls {
                    scan.judges.entry(judge.clone()).or_insert_with(position);
                }
            }
            for (number, target) in self.targets.iter().enumerate() {
                let applies = |check: &CheckSpec| {
                    check.applies_to(target.base()) && check.applies_to_tags(&case.tags)
                };
                if self.checks.iter().chain(&case_checks).any(applies) {
                    scan.checked.insert(number);
                } else {
                    scan.unchecked.entry(number).or_insert_with(|| case.id.to_string());
                }
            }
            scan.tags.extend(case.tags);
        }
    }

    /// Reads the checks of a case and renders them with its fields.
    fn case_checks(
        &self,
        case: &Case,
        ids: &BTreeSet<String>,
    ) -> Result<Vec<CheckSpec>, Vec<CheckProblem>> {
        let checks = self.reader.of_case(case, ids.clone())?;
        let mut problems = Vec::new();
        for check in &checks {
            problems.extend(self.reader.check_environment(check, self.context.environment));
            if let Err(error) = check.for_case(&case.fields) {
                problems.push(CheckProblem::at("kind", format!("check `{}`: {error}", check.id)));
            }
        }
        if problems.is_empty() { Ok(checks) } else { Err(problems) }
    }

    fn report_unchecked(&self, root: &Node<'_, '_>, scan: &CaseScan, problems: &mut Problems<'_>) {
        for (number, case) in &scan.unchecked {
            let Some(target) = self.targets.get(*number) else { continue };
            let named = |node: &Node<'_, '_>| {
                node.text("name").is_some_and(|name| target.name == name.value)
            };
            let Some(node) = root.tables("target").into_iter().find(named) else { continue };
            // Without checks, the exit code of a program decides.
            if target.is_program() {
                continue;
            }
            match scan.checked.contains(number) {
                false => problems
                    .at(node.span, format!("no check applies to target `{}`", target.name))
                    .with_hint(
                        "add a [[check]] such as `kind = \"contains\"`, `value = \"{{ expected }}\"`",
                    ),
                true => problems
                    .at(
                        node.span,
                        format!("no check applies to target `{}` on case `{case}`", target.name),
                    )
                    .with_hint("add a [[check]] without `tags`, or `checks` to the case"),
            };
        }
    }

    fn report_tags(
        &self,
        nodes: &[Node<'_, '_>],
        tags: &BTreeSet<String>,
        problems: &mut Problems<'_>,
    ) {
        for tag in nodes.iter().filter_map(|node| node.texts("tags")).flatten() {
            if !tags.contains(tag.value) {
                let message = format!("no case has the tag `{}`", tag.value);
                problems.at(tag.span, message).hint =
                    suggest(tag.value, tags.iter().map(String::as_str));
            }
        }
    }

    /// Returns the judge models by their names in checks.
    fn judges(
        &self,
        root: &Node<'_, '_>,
        cases: &CaseSource,
        scan: &CaseScan,
        problems: &mut Problems<'_>,
    ) -> BTreeMap<String, Model> {
        let mut judges = BTreeMap::new();
        let mut seen = BTreeSet::new();
        // Judges of targets that are not selected need no key.
        let is_selected =
            |check: &CheckSpec| self.targets.iter().any(|target| check.applies_to(target.base()));
        let is_judge = |name: &str| {
            let mut judges = self.checks.iter().filter(|check| is_selected(check));
            scan.judges.contains_key(name)
                || judges.any(|check| check.judge_calls.iter().any(|(judge, _)| judge == name))
        };
        let mut names = Vec::new();
        root.tables("check").iter().for_each(|node| add_judges(node, &mut names));
        names.extend(default_judge(root));
        for name in names {
            let key = name.value.to_owned();
            if is_judge(&key) && seen.insert(key.clone()) {
                let model = resolve::resolve(name, self.models, self.context, problems);
                judges.extend(model.map(|model| (key, model)));
            }
        }
        for (name, position) in &scan.judges {
            if !seen.insert(name.clone()) {
                continue;
            }
            let mut local = Problems::new(self.context.path, self.context.text);
            let named = SourceText { value: name.as_str(), span: 0..0 };
            let model = resolve::resolve(named, self.models, self.context, &mut local);
            judges.extend(model.map(|model| (name.clone(), model)));
            // Problems of a model under [models] keep their position.
            let is_direct = !self.models.contains_key(name);
            problems.extend(local.into_sorted().into_iter().map(|problem| match is_direct {
                true => {
                    Problem { path: cases.path().to_owned(), position: position.clone(), ..problem }
                }
                false => problem,
            }));
        }
        judges
    }
}

/// Adds the names of the judges of a check, or of the checks in a group.
fn add_judges<'a>(node: &Node<'a, '_>, names: &mut Vec<SourceText<'a>>) {
    names.extend(node.text("model"));
    node.tables("checks").iter().for_each(|member| add_judges(member, names));
}

/// Converts a problem of a case check into one at the position of the case.
fn case_problem(cases: &CaseSource, case: &Case, problem: CheckProblem) -> Problem {
    Problem {
        code: None,
        message: problem.message,
        path: cases.path().to_owned(),
        position: case.checks.as_ref().and_then(|checks| checks.position.clone()),
        hint: problem.hint,
    }
}
