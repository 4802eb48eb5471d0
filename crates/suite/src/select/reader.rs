//! Reading `[select]`, with everything that is wrong with it.

use super::{SelectBudget, SelectObjective, SelectPlan};
use crate::models::NamedModel;
use crate::problem::{Problem, Problems, suggest};
use crate::resolve;
use crate::roles::roles_of;
use crate::suite::Refining;
use crate::tree::{At, Node};
use bakeoff_core::NanoDollars;
use bakeoff_llm::Model;
use bakeoff_select::SelectorOptions;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

/// Most combinations of one search.
const MOST_COMBINATIONS: usize = 100_000;

/// A plan, and who its candidates are.
pub(crate) struct Search {
    pub(crate) plan: SelectPlan,
    pub(crate) fillers: BTreeMap<String, Filler>,
}

/// Who may fill a role.
pub(crate) struct Filler {
    /// `provider/model`.
    pub(crate) label: String,
    /// Absent for programs, which make their calls themselves.
    pub(crate) model: Option<Model>,
}

/// The target whose roles are filled, if that is clear.
pub(crate) fn target(root: &Node<'_, '_>) -> Option<String> {
    let select = root.table("select")?;
    let named = select.text("target").map(|name| name.value);
    let nodes = root.tables("target");
    let users = nodes.iter().filter(|node| !roles_of(node).is_empty());
    let mut names = users.filter_map(|node| node.text("name")).map(|name| name.value);
    let only = match (names.next(), names.next()) {
        (Some(only), None) => Some(only),
        _ => None,
    };
    named.or(only).map(str::to_owned)
}

/// That there is nothing to search in a file.
pub(crate) fn missing(path: &Path, root: Option<&Node<'_, '_>>) -> Problem {
    let targets = root.map(|root| root.tables("target")).unwrap_or_default();
    let has_roles = targets.iter().any(|node| !roles_of(node).is_empty());
    let hint = match has_roles {
        true => {
            "add [select.roles] with candidates for each role, such as `solver = [\"small\", \"openai/gpt-4o-mini\"]`"
        }
        false => {
            "give a target a role, such as `model = \"role/solver\"`, and add [select.roles] with its \
             candidates: `solver = [\"small\", \"openai/gpt-4o-mini\"]`"
        }
    };
    Problem {
        code: None,
        message: "the suite has no [select], so there is nothing to choose from".to_owned(),
        path: path.to_owned(),
        position: None,
        hint: Some(hint.to_owned()),
    }
}

/// Reads `[select]`. Keys of models are needed only when combinations are wanted.
pub(crate) fn read(
    root: &Node<'_, '_>,
    models: &BTreeMap<String, NamedModel>,
    refining: &Refining<'_>,
    problems: &mut Problems<'_>,
) -> Option<Search> {
    let node = root.table("select")?;
    let reader = Reader { node: &node, models, refining };
    let objective = reader.objective(problems);
    let method = node.text("method").map_or("auto", |method| method.value);
    reader.check_method(method, problems);
    let proposer = reader.proposer(problems);
    let target = reader.target(root, problems)?;
    let roles = reader.roles(&target, problems);
    let fillers = reader.fillers(&target, &roles, problems);
    Some(Search {
        plan: SelectPlan {
            target: target.text("name")?.value.to_owned(),
            roles,
            describe: node.text_map("describe").into_iter().collect(),
            proposer,
            method: method.to_owned(),
            confidence: node.number("confidence"),
            epsilon: node.number("epsilon"),
            objective,
            budget: reader.budget(),
            options: reader.options(),
        },
        fillers,
    })
}

struct Reader<'a, 't> {
    node: &'a Node<'a, 't>,
    models: &'a BTreeMap<String, NamedModel>,
    refining: &'a Refining<'a>,
}

impl Reader<'_, '_> {
    fn target<'r, 't>(
        &self,
        root: &Node<'r, 't>,
        problems: &mut Problems<'_>,
    ) -> Option<Node<'r, 't>> {
        let nodes = root.tables("target");
        let name = |node: &Node<'r, 't>| node.text("name").map(|name| name.value);
        let users: Vec<&Node<'_, '_>> =
            nodes.iter().filter(|node| !roles_of(node).is_empty()).collect();
        let names: Vec<&str> = users.iter().filter_map(|node| name(node)).collect();
        let hint =
            "a target has a role by `model = \"role/solver\"`, by `role` in a chain, or by `roles`";
        let Some(wanted) = self.node.text("target") else {
            match users.as_slice() {
                [only] => return Some((*only).clone()),
                [] => problems.at(self.node.span.clone(), "no target has a role").with_hint(hint),
                _ => problems
                    .at(self.node.span.clone(), "several targets have roles")
                    .with_hint(format!("add `target = …`, one of `{}`", names.join("`, `"))),
            };
            return None;
        };
        match nodes.iter().find(|node| name(node) == Some(wanted.value)) {
            Some(found) if roles_of(found).is_empty() => {
                let message = format!("the target `{}` has no roles", wanted.value);
                problems.at(wanted.span, message).with_hint(hint);
                None
            }
            Some(found) => Some(found.clone()),
            None => {
                let message = format!("there is no target `{}`", wanted.value);
                problems.at(wanted.span, message).hint = suggest(wanted.value, names);
                None
            }
        }
    }

    /// Roles with their candidates.
    fn roles(
        &self,
        target: &Node<'_, '_>,
        problems: &mut Problems<'_>,
    ) -> Vec<(String, Vec<String>)> {
        let used: Vec<&str> = roles_of(target).iter().map(|role| role.value).collect();
        let target_name = target.text("name").map_or("", |name| name.value);
        let unknown = |key: &At<&str>, problems: &mut Problems<'_>| {
            let message = format!("the target `{target_name}` has no role `{}`", key.value);
            problems.at(key.span.clone(), message).hint = suggest(key.value, used.iter().copied());
        };
        if let Some(describe) = self.node.table("describe") {
            let keys = describe.keys();
            keys.iter()
                .filter(|key| !used.contains(&key.value))
                .for_each(|key| unknown(key, problems));
        }
        let Some(table) = self.node.table("roles") else { return Vec::new() };
        let mut roles = Vec::new();
        for key in table.keys() {
            let Some(candidates) = table.texts(key.value) else { continue };
            if !used.contains(&key.value) {
                unknown(&key, problems);
            }
            if candidates.is_empty() {
                problems
                    .at(key.span.clone(), format!("the role `{}` has no candidates", key.value))
                    .with_hint("name models for it, or leave it out and fill it under [roles]");
            }
            let mut seen = BTreeSet::new();
            for twice in candidates.iter().filter(|one| !seen.insert(one.value)) {
                let message =
                    format!("`{}` is twice among the candidates of `{}`", twice.value, key.value);
                problems.at(twice.span.clone(), message);
            }
            let names = candidates.iter().map(|candidate| candidate.value.to_owned());
            roles.push((key.value.to_owned(), names.collect::<Vec<_>>()));
        }
        if roles.is_empty() {
            problems.at(table.span.clone(), "no role has candidates").with_hint(format!(
                "write `{} = [\"sim/echo\", \"openai/gpt-4o-mini\"]`",
                used.first().unwrap_or(&"solver")
            ));
        }
        // Of a target that is read, whoever reads it says that nobody fills a role.
        if !self.refining.wants(target) {
            for role in roles_of(target) {
                let is_there = roles.iter().any(|(name, _)| name == role.value);
                if !is_there {
                    self.refining.roles.fill(&role, problems);
                }
            }
        }
        let count = roles.iter().map(|(_, names)| names.len()).try_fold(1, usize::checked_mul);
        if count.is_none_or(|count| count > MOST_COMBINATIONS) {
            let count = count.map_or("too many".to_owned(), |count| count.to_string());
            problems
                .at(
                    table.span.clone(),
                    format!("{count} combinations, at most {MOST_COMBINATIONS} are possible"),
                )
                .with_hint("leave out candidates, or fix roles under [roles]");
        }
        roles
    }

    /// Who the candidates are; a problem for each that nobody knows.
    fn fillers(
        &self,
        target: &Node<'_, '_>,
        roles: &[(String, Vec<String>)],
        problems: &mut Problems<'_>,
    ) -> BTreeMap<String, Filler> {
        let Some(table) = self.node.table("roles") else { return BTreeMap::new() };
        let mut fillers = BTreeMap::new();
        let mut seen = BTreeSet::new();
        let lists = roles.iter().filter_map(|(role, _)| table.texts(role));
        for candidate in lists.flatten().filter(|candidate| seen.insert(candidate.value)) {
            let (name, label) = (candidate.value, resolve::label(&candidate, self.models));
            let model = if target.get("agent").is_some() {
                // An agent has its own names of models.
                None
            } else if target.get("command").is_some() {
                match resolve::find(candidate, self.models, problems) {
                    Some(_) => None,
                    None => continue,
                }
            } else {
                match self.model(candidate, problems) {
                    Some(model) => Some(model),
                    None => continue,
                }
            };
            fillers.insert(name.to_owned(), Filler { label, model });
        }
        fillers
    }

    /// A model; without its key when it is not going to be asked.
    fn model(&self, name: At<&str>, problems: &mut Problems<'_>) -> Option<Model> {
        let environment = self.refining.environment;
        let lenient = |name: &str| environment(name).or_else(|| Some("not needed".to_owned()));
        match self.refining.combinations {
            true => resolve::resolve_in(name, self.models, environment, problems),
            false => resolve::resolve_in(name, self.models, &lenient, problems),
        }
    }

    fn proposer(&self, problems: &mut Problems<'_>) -> Option<(String, Model)> {
        let name = self.node.text("proposer")?;
        let written = name.value.to_owned();
        Some((written, self.model(name, problems)?))
    }

    /// Methods that cannot do without something.
    fn check_method(&self, method: &str, problems: &mut Problems<'_>) {
        let needed = match method {
            "threshold_se" => {
                Some(("threshold", "the mean score that is good enough: `threshold = 0.75`"))
            }
            "lm_proposal" => {
                Some(("proposer", "the model that proposes: `proposer = \"openai/gpt-4o\"`"))
            }
            _ => None,
        };
        if let Some((key, hint)) = needed.filter(|(key, _)| self.node.get(key).is_none()) {
            let span = self.node.get("method").map_or(self.node.span.clone(), |value| value.span());
            problems.at(span, format!("`{method}` needs `{key}`")).with_hint(format!("add {hint}"));
        }
    }

    fn objective(&self, problems: &mut Problems<'_>) -> SelectObjective {
        let number = |name| self.node.number(name);
        let weight = ["cost_weight", "latency_weight"]
            .into_iter()
            .find(|name| number(name).is_some_and(|weight| weight > 0.0));
        let bounds = ["cheapest_within", "max_task_usd"];
        let given = bounds.into_iter().filter(|name| self.node.get(name).is_some());
        let all: Vec<&str> = weight.into_iter().chain(given).collect();
        if let [first, second, ..] = all.as_slice() {
            let span = self.node.get(second).map_or(self.node.span.clone(), |value| value.span());
            problems
                .at(span, format!("`{first}` and `{second}` cannot both say what is best"))
                .with_hint("keep the weights, `cheapest_within` or `max_task_usd`");
        }
        SelectObjective {
            cost_weight: number("cost_weight"),
            latency_weight: number("latency_weight"),
            cheapest_within: number("cheapest_within"),
            max_task_usd: number("max_task_usd"),
        }
    }

    fn budget(&self) -> SelectBudget {
        SelectBudget {
            cost: self
                .node
                .number("max_cost_usd")
                .map(|dollars| NanoDollars((dollars * 1e9).round() as i64)),
            cells: self.node.integer("max_cells").and_then(|cells| u64::try_from(cells).ok()),
            time: self
                .node
                .number("deadline")
                .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()),
        }
    }

    fn options(&self) -> SelectorOptions {
        let number = |name| self.node.number(name);
        let count = |name| self.node.integer(name).and_then(|number| usize::try_from(number).ok());
        SelectorOptions {
            fraction: number("fraction"),
            threshold: number("threshold"),
            width: number("width"),
            first: count("first"),
            growth: number("growth"),
            curiosity: number("curiosity"),
            batch: count("batch"),
            iterations: count("iterations"),
            restarts: count("restarts"),
            patience: count("patience"),
            ..SelectorOptions::default()
        }
    }
}
