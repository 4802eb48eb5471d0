//! The winner of a search as TOML.

use super::selection_file::SelectionFile;
use std::fmt::Write;
use toml::{Table, Value};

/// Returns the winner of a search as TOML: `[roles]`, and the tables of the suite's `[models]` and `[sim]`
/// that it names.
pub(super) fn routes(file: &SelectionFile, suite: &Table) -> String {
    let mut text = String::new();
    let confidence = file.selection.confidence.map_or(String::new(), |confidence| {
        format!(", confidence {:.1} %", (1000.0 * confidence).floor() / 10.0)
    });
    // Writing to a string cannot fail.
    let _ =
        writeln!(text, "# Best combination for {} of `{}`{confidence}.", file.target, file.suite);
    let _ = writeln!(text, "# Found by `bakeoff select` in {}.\n", file.run_id);
    let mut tables = Table::new();
    // Roles that were not searched keep the models of the suite.
    let fixed = suite.get("roles").and_then(Value::as_table).cloned().unwrap_or_default();
    let mut roles: Table = fixed.into_iter().filter(|(_, model)| model.is_str()).collect();
    let best = file.best.iter().map(|(role, model)| (role.clone(), model.clone().into()));
    roles.extend(best);
    let used: Vec<String> =
        roles.values().filter_map(|model| Some(model.as_str()?.to_owned())).collect();
    tables.insert("roles".to_owned(), Value::Table(roles));
    let mut sim_names: Vec<String> = used.iter().map(|name| sim_name(name)).collect();
    if let Some(models) = suite.get("models").and_then(Value::as_table) {
        let used = models.iter().filter(|(name, _)| used.contains(name));
        let used: Table = used.map(|(name, model)| (name.clone(), model.clone())).collect();
        sim_names.extend(used.values().filter_map(|model| {
            let text = |key| model.get(key).and_then(Value::as_str);
            (text("provider")? == "sim").then(|| text("model").map(str::to_owned)).flatten()
        }));
        insert(&mut tables, "models", used);
    }
    if let Some(models) = suite.get("sim").and_then(Value::as_table) {
        let used = models.iter().filter(|(name, _)| sim_names.contains(name));
        insert(
            &mut tables,
            "sim",
            used.map(|(name, model)| (name.clone(), model.clone())).collect(),
        );
    }
    text.push_str(&toml::to_string(&tables).unwrap_or_default());
    text
}

/// Returns the name under `[sim]` of a model `sim/name` or `name`.
fn sim_name(model: &str) -> String {
    model.strip_prefix("sim/").unwrap_or(model).to_owned()
}

/// Inserts a table unless it is empty.
fn insert(tables: &mut Table, key: &str, table: Table) {
    if !table.is_empty() {
        tables.insert(key.to_owned(), Value::Table(table));
    }
}
