//! Cases and checks together: the checks that cases bring along, the tags that checks name, and
//! answers that nothing would check.

use super::checks::{CheckReader, CheckSpec};
use super::form::Wrong;
use super::resolve;
use super::suite::Refining;
use super::targets::Target;
use super::tree::{At, Node};
use crate::case::{Case, CaseSource, FewProblems, Survey};
use crate::models::NamedModel;
use crate::problem::{Problem, Problems, SourcePosition, suggest};
use bakeoff_llm::Model;
use std::collections::{BTreeMap, BTreeSet};

/// The targets, and what judges them.
pub(super) struct Coverage<'a> {
    pub(super) refining: &'a Refining<'a>,
    pub(super) reader: &'a CheckReader,
    pub(super) checks: &'a [CheckSpec],
    pub(super) targets: &'a [Target],
    pub(super) models: &'a BTreeMap<String, NamedModel>,
}

/// What a look at all cases found.
#[derive(Default)]
struct Found {
    problems: FewProblems,
    has_problems: bool,
    /// Tags of any case.
    tags: BTreeSet<String>,
    /// Judges of cases' checks, and where the first of those cases is.
    judges: BTreeMap<String, Option<Box<SourcePosition>>>,
    /// Per target, the first case whose answers nothing checks, and whether others are checked.
    unchecked: BTreeMap<usize, String>,
    checked: BTreeSet<usize>,
}

impl Coverage<'_> {
    /// Looks at all cases, where there is anything to see, and finds the models that judge.
    pub(super) fn look(
        &self,
        root: &Node<'_, '_>,
        cases: &CaseSource,
        survey: &Survey,
        problems: &mut Problems<'_>,
    ) -> BTreeMap<String, Model> {
        let nodes = root.tables("check");
        let complete = self.checks.len() == nodes.len();
        let has_own = survey.fields.contains("checks");
        let has_tags = self.checks.iter().any(|check| !check.tags.is_empty());
        let mut found = Found::default();
        if has_own || has_tags || !self.all_checked() {
            self.survey(cases, &mut found);
        }
        if complete && !found.has_problems {
            self.report_unchecked(root, &found, problems);
        }
        if has_tags {
            self.report_tags(&nodes, &found.tags, problems);
        }
        let judges = self.judges(&nodes, cases, &found, problems);
        problems.extend(found.problems.finish());
        judges
    }

    /// Whether every target has a check for all cases.
    fn all_checked(&self) -> bool {
        let whole = |target: &&Target| {
            let applies =
                |check: &&CheckSpec| check.tags.is_empty() && check.applies_to(target.base());
            self.checks.iter().any(|check| applies(&check))
        };
        self.targets.iter().all(|target| target.is_program() || whole(&target))
    }

    fn survey(&self, cases: &CaseSource, found: &mut Found) {
        let ids: BTreeSet<String> = self.checks.iter().map(|check| check.id.clone()).collect();
        // Cases that cannot be read have been reported already.
        for case in cases.iter().filter_map(Result::ok) {
            let own = match self.own_checks(&case, &ids) {
                Ok(own) => own,
                Err(wrong) => {
                    found.has_problems = true;
                    for wrong in wrong {
                        found.problems.push(problem(cases, &case, wrong));
                    }
                    continue;
                }
            };
            for check in &own {
                if let (Some(judge), Some(checks)) = (&check.judge, &case.checks) {
                    let position = || checks.position.clone();
                    found.judges.entry(judge.clone()).or_insert_with(position);
                }
            }
            for (number, target) in self.targets.iter().enumerate() {
                let applies = |check: &CheckSpec| {
                    check.applies_to(target.base()) && check.applies_to_tags(&case.tags)
                };
                if self.checks.iter().chain(&own).any(applies) {
                    found.checked.insert(number);
                } else {
                    found.unchecked.entry(number).or_insert_with(|| case.id.to_string());
                }
            }
            found.tags.extend(case.tags);
        }
    }

    /// The checks of a case, tried out on it.
    fn own_checks(
        &self,
        case: &Case,
        ids: &BTreeSet<String>,
    ) -> Result<Vec<CheckSpec>, Vec<Wrong>> {
        let own = self.reader.of_case(case, ids.clone())?;
        let mut wrong = Vec::new();
        for check in &own {
            wrong.extend(self.reader.look_outside(check, self.refining.environment));
            if let Err(message) = check.for_case(&case.fields) {
                wrong.push(Wrong::at("kind", format!("check `{}`: {message}", check.id)));
            }
        }
        if wrong.is_empty() { Ok(own) } else { Err(wrong) }
    }

    fn report_unchecked(&self, root: &Node<'_, '_>, found: &Found, problems: &mut Problems<'_>) {
        for (number, case) in &found.unchecked {
            let Some(target) = self.targets.get(*number) else { continue };
            let named = |node: &Node<'_, '_>| {
                node.text("name").is_some_and(|name| target.name == name.value)
            };
            let Some(node) = root.tables("target").into_iter().find(named) else { continue };
            // A program that nothing checks is judged by its exit code.
            if target.is_program() {
                continue;
            }
            match found.checked.contains(number) {
                false => problems
                    .at(node.span, format!("nothing checks the answers of `{}`", target.name))
                    .with_hint(
                        "add a [[check]] such as `kind = \"contains\"`, `value = \"{{ expected }}\"`",
                    ),
                true => problems
                    .at(
                        node.span,
                        format!("nothing checks the answers of `{}` to the case `{case}`", target.name),
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

    /// The models that judge, by the names that checks give them.
    fn judges(
        &self,
        nodes: &[Node<'_, '_>],
        cases: &CaseSource,
        found: &Found,
        problems: &mut Problems<'_>,
    ) -> BTreeMap<String, Model> {
        let mut judges = BTreeMap::new();
        let mut seen = BTreeSet::new();
        // A judge of targets that are not wanted needs no key.
        let wanted =
            |check: &CheckSpec| self.targets.iter().any(|target| check.applies_to(target.base()));
        let is_judge = |name: &str| {
            let mut judges = self.checks.iter().filter(|check| wanted(check));
            judges.any(|check| check.judge.as_deref() == Some(name))
        };
        for name in nodes.iter().filter_map(|node| node.text("model")) {
            let key = name.value.to_owned();
            if is_judge(&key) && seen.insert(key.clone()) {
                let model = resolve::resolve(name, self.models, self.refining, problems);
                judges.extend(model.map(|model| (key, model)));
            }
        }
        for (name, position) in &found.judges {
            if !seen.insert(name.clone()) {
                continue;
            }
            let mut local = Problems::new(self.refining.path, self.refining.text);
            let named = At { value: name.as_str(), span: 0..0 };
            let model = resolve::resolve(named, self.models, self.refining, &mut local);
            judges.extend(model.map(|model| (name.clone(), model)));
            // What is wrong with a model of [models] is wrong there.
            let here = !self.models.contains_key(name);
            problems.extend(local.into_sorted().into_iter().map(|problem| match here {
                true => {
                    Problem { path: cases.path().to_owned(), position: position.clone(), ..problem }
                }
                false => problem,
            }));
        }
        judges
    }
}

/// What is wrong with a check of a case, in the case's place.
fn problem(cases: &CaseSource, case: &Case, wrong: Wrong) -> Problem {
    Problem {
        code: None,
        message: wrong.message,
        path: cases.path().to_owned(),
        position: case.checks.as_ref().and_then(|checks| checks.position.clone()),
        hint: wrong.hint,
    }
}
