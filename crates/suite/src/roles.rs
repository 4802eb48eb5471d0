//! Reading of `[roles]`: models assigned to roles, and the roles of targets.

use super::tree::{Node, SourceText};
use crate::problem::{Problems, suggest};
use std::collections::{BTreeMap, BTreeSet};

/// Prefix of a role name in place of a model name.
const PREFIX: &str = "role/";

/// Models assigned to roles.
#[derive(Debug)]
pub(super) struct Roles<'a> {
    /// Models of `[roles]`.
    assigned: BTreeMap<&'a str, SourceText<'a>>,
    /// First candidates of `[select.roles]`.
    first_candidates: BTreeMap<&'a str, SourceText<'a>>,
    /// Whether candidates have precedence over `[roles]`, because a search is loaded.
    prefers_candidates: bool,
    /// Whether the first candidate is used for roles without a model, because the suite is not run.
    allows_candidates: bool,
    has_select: bool,
}

impl<'a> Roles<'a> {
    /// Reads `[roles]` and the first candidates of `[select.roles]`.
    pub(super) fn read(
        root: &Node<'a, '_>,
        prefers_candidates: bool,
        allows_candidates: bool,
    ) -> Roles<'a> {
        let texts = |node: Node<'a, '_>| -> BTreeMap<&'a str, SourceText<'a>> {
            let named = |key: SourceText<'a>| Some((key.value, node.text(key.value)?));
            node.keys().into_iter().filter_map(named).collect()
        };
        let firsts = |node: Node<'a, '_>| -> BTreeMap<&'a str, SourceText<'a>> {
            let named =
                |key: SourceText<'a>| Some((key.value, node.texts(key.value)?.into_iter().next()?));
            node.keys().into_iter().filter_map(named).collect()
        };
        let select = root.table("select");
        Roles {
            assigned: root.table("roles").map(texts).unwrap_or_default(),
            first_candidates: select
                .as_ref()
                .and_then(|select| select.table("roles"))
                .map(firsts)
                .unwrap_or_default(),
            prefers_candidates,
            allows_candidates,
            has_select: select.is_some(),
        }
    }

    /// Returns whether `[roles]` assigns a model to a role.
    pub(super) fn is_assigned(&self, role: &str) -> bool {
        self.assigned.contains_key(role)
    }

    /// Returns the model name of a role.
    pub(super) fn get(&self, role: &str) -> Option<&SourceText<'a>> {
        let candidate = self.first_candidates.get(role);
        if self.prefers_candidates && candidate.is_some() {
            return candidate;
        }
        self.assigned.get(role).or(candidate.filter(|_| self.allows_candidates))
    }

    /// Returns the model name of a role, and reports a role without a model.
    pub(super) fn require(
        &self,
        role: &SourceText<'_>,
        problems: &mut Problems<'_>,
    ) -> Option<SourceText<'a>> {
        if let Some(model) = self.get(role.value) {
            return Some(model.clone());
        }
        if role.value.trim().is_empty() {
            problems.at(role.span.clone(), "empty role name");
            return None;
        }
        let name = role.value;
        let search = match (self.prefers_candidates, self.has_select) {
            (true, _) => ", or its candidates under [select.roles]",
            (false, true) => ", or let `bakeoff select` choose one",
            (false, false) => "",
        };
        let known = self.assigned.keys().copied();
        let similar = suggest(name, known).filter(|hint| hint.starts_with("did you mean"));
        let hint = match similar.as_deref().and_then(|hint| hint.split('`').nth(1)) {
            Some(similar) => format!("[roles] has `{similar}`; the names must match"),
            None => format!("write `{name} = \"provider/model\"` under [roles]{search}"),
        };
        problems
            .at(role.span.clone(), format!("no model assigned to role `{name}`"))
            .with_hint(hint);
        None
    }

    /// Replaces `role/NAME` with the model name of that role.
    pub(super) fn resolve(
        &self,
        model: SourceText<'a>,
        problems: &mut Problems<'_>,
    ) -> Option<SourceText<'a>> {
        match role_of_model(&model) {
            Some(role) => self.require(&role, problems),
            None => Some(model),
        }
    }
}

/// Returns the role of a model name of the form `role/NAME`.
pub(super) fn role_of_model<'a>(model: &SourceText<'a>) -> Option<SourceText<'a>> {
    let value = model.value.strip_prefix(PREFIX)?;
    Some(SourceText { value, span: model.span.clone() })
}

/// Returns the roles of a target, each at the position of its first use.
pub(super) fn roles_of<'a>(target: &Node<'a, '_>) -> Vec<SourceText<'a>> {
    let of_model = |node: &Node<'a, '_>| node.text("model").as_ref().and_then(role_of_model);
    let steps = target.tables("chain");
    let of_steps = steps.iter().filter_map(|step| step.text("role").or_else(|| of_model(step)));
    let listed = target.texts("roles").unwrap_or_default();
    let mut seen = BTreeSet::new();
    let all = of_steps.chain(of_model(target)).chain(listed);
    all.filter(|role| seen.insert(role.value)).collect()
}

/// Returns the environment variable with the model of a role.
pub(super) fn variable(role: &str) -> String {
    let plain = |letter: char| match letter.to_ascii_uppercase() {
        letter @ ('A'..='Z' | '0'..='9') => letter,
        _ => '_',
    };
    format!("BAKEOFF_MODEL_{}", role.chars().map(plain).collect::<String>())
}
