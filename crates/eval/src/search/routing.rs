//! Who won, as TOML: `[roles]`, with the models that the suite defines.

use super::file::SelectionFile;
use crate::Error;
use bakeoff_journal::write_atomic;
use std::fmt::Write;
use std::path::Path;
use toml::{Table, Value};

impl SelectionFile {
    /// Writes who won as TOML: `[roles]`, and of the suite's `[models]` and `[sim]` those that are
    /// named there, so that nothing else is needed to use it.
    ///
    /// # Errors
    ///
    /// The suite cannot be read any more, or the file not be written.
    pub fn apply(&self, suite: &Path, to: &Path) -> Result<(), Error> {
        let text = std::fs::read_to_string(suite)
            .map_err(|source| Error::Read { path: suite.to_owned(), source })?;
        // It was read before, so it is TOML unless somebody has changed it since.
        let written: Table = toml::from_str(&text).unwrap_or_default();
        let routes = self.routes(&written);
        // A link stays one, and what is no file is written to as it is.
        let to = to.canonicalize().unwrap_or_else(|_| to.to_owned());
        match to.metadata() {
            Ok(there) if !there.is_file() => std::fs::write(&to, routes)
                .map_err(|source| Error::Write { path: to.clone(), source }),
            _ => Ok(write_atomic(&to, routes.as_bytes())?),
        }
    }

    fn routes(&self, suite: &Table) -> String {
        let mut text = String::new();
        let sure = self.selection.confidence.map_or(String::new(), |confidence| {
            format!(", {:.1} % sure", (1000.0 * confidence).floor() / 10.0)
        });
        // Writing to a text cannot fail.
        let _ = writeln!(text, "# The best for {} of `{}`{sure}.", self.target, self.suite);
        let _ = writeln!(text, "# Found by `bakeoff select` in {}.\n", self.run_id);
        let mut routes = Table::new();
        // Roles that were not searched are filled as the suite says.
        let fixed = suite.get("roles").and_then(Value::as_table).cloned().unwrap_or_default();
        let mut roles: Table = fixed.into_iter().filter(|(_, model)| model.is_str()).collect();
        let best = self.best.iter().map(|(role, model)| (role.clone(), model.clone().into()));
        roles.extend(best);
        let used: Vec<String> =
            roles.values().filter_map(|model| Some(model.as_str()?.to_owned())).collect();
        routes.insert("roles".to_owned(), Value::Table(roles));
        let mut sim_names: Vec<String> = used.iter().map(|name| simulated(name)).collect();
        if let Some(models) = suite.get("models").and_then(Value::as_table) {
            let used = models.iter().filter(|(name, _)| used.contains(name));
            let used: Table = used.map(|(name, model)| (name.clone(), model.clone())).collect();
            sim_names.extend(used.values().filter_map(|model| {
                let text = |key| model.get(key).and_then(Value::as_str);
                (text("provider")? == "sim").then(|| text("model").map(str::to_owned)).flatten()
            }));
            insert(&mut routes, "models", used);
        }
        if let Some(personas) = suite.get("sim").and_then(Value::as_table) {
            let used = personas.iter().filter(|(name, _)| sim_names.contains(name));
            insert(
                &mut routes,
                "sim",
                used.map(|(name, one)| (name.clone(), one.clone())).collect(),
            );
        }
        text.push_str(&toml::to_string(&routes).unwrap_or_default());
        text
    }
}

/// The persona that a model would be: `sim/name`, or its name.
fn simulated(model: &str) -> String {
    model.strip_prefix("sim/").unwrap_or(model).to_owned()
}

fn insert(routes: &mut Table, key: &str, table: Table) {
    if !table.is_empty() {
        routes.insert(key.to_owned(), Value::Table(table));
    }
}
