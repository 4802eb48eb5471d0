//! Recorded matrices: what each combination gave on each datapoint.

use bakeoff_core::NanoDollars;
use bakeoff_select::{Observation, Role, Space, SpaceError};
use serde::Deserialize;
use serde_json::Value;

/// Scores, costs and latencies of all cells.
#[derive(Debug, Clone)]
pub struct Matrix {
    /// What it is called.
    pub name: String,
    /// Its combinations and datapoints.
    pub space: Space,
    /// For each combination, what its datapoints gave.
    pub cells: Vec<Vec<Observation>>,
}

/// Why a matrix cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MatrixError {
    /// It is not JSON, or not of this form.
    #[error("not a matrix")]
    Json(#[from] serde_json::Error),
    /// A combination that is not `role=model + role=model`.
    #[error(
        "combination {row} is `{text}`, not `role=model + role=model` with the roles of the first"
    )]
    Combo {
        /// Which one, from 0.
        row: usize,
        /// What is there.
        text: String,
    },
    /// A table whose size is not that of the combinations and datapoints.
    #[error("`{table}` has {found} {what}, not {expected}")]
    Size {
        /// Which table.
        table: &'static str,
        /// Rows, or entries of a row.
        what: String,
        /// How many there are.
        found: usize,
        /// How many there should be.
        expected: usize,
    },
    /// A number that cannot be.
    #[error("`{table}` has {value} at row {row}, column {column}")]
    Number {
        /// Which table.
        table: &'static str,
        /// What is there.
        value: f64,
        /// Which combination.
        row: usize,
        /// Which datapoint.
        column: usize,
    },
    /// There is nothing to choose from.
    #[error(transparent)]
    Space(#[from] SpaceError),
}

#[derive(Deserialize)]
struct Raw {
    benchmark: String,
    combos: Vec<String>,
    datapoints: Vec<Value>,
    score: Vec<Vec<Option<f64>>>,
    latency_s: Vec<Vec<Option<f64>>>,
    cost_usd: Vec<Vec<Option<f64>>>,
}

impl Matrix {
    /// Reads a matrix; `null` is what was not recorded.
    ///
    /// # Errors
    ///
    /// It is not a matrix, or its parts do not fit each other.
    pub fn parse(text: &str) -> Result<Matrix, MatrixError> {
        let raw: Raw = serde_json::from_str(text)?;
        let (rows, columns) = (raw.combos.len(), raw.datapoints.len());
        check("score", &raw.score, rows, columns, f64::NEG_INFINITY)?;
        check("latency_s", &raw.latency_s, rows, columns, 0.0)?;
        check("cost_usd", &raw.cost_usd, rows, columns, 0.0)?;
        let space = read_space(&raw.combos, columns)?;
        let cell = |row: usize, column: usize| {
            let cost = raw.cost_usd[row][column].and_then(NanoDollars::from_dollars);
            let cost = cost.unwrap_or_default();
            Observation {
                score: raw.score[row][column],
                cost,
                paid: cost,
                latency: raw.latency_s[row][column].unwrap_or(0.0),
            }
        };
        let cells = (0..rows).map(|row| (0..columns).map(|column| cell(row, column)).collect());
        Ok(Matrix { name: raw.benchmark, space, cells: cells.collect() })
    }

    /// The true mean of each combination over what is recorded; negative infinity when nothing is.
    pub fn truth(&self) -> Vec<f64> {
        let mean = |row: &Vec<Observation>| {
            let scores: Vec<f64> = row.iter().filter_map(|cell| cell.score).collect();
            if scores.is_empty() {
                return f64::NEG_INFINITY;
            }
            scores.iter().sum::<f64>() / scores.len() as f64
        };
        self.cells.iter().map(mean).collect()
    }

    /// Dollars of each combination over all datapoints.
    pub fn costs(&self) -> Vec<f64> {
        let sum = |row: &Vec<Observation>| {
            let costs = row.iter().map(|cell| cell.cost);
            costs.fold(NanoDollars::default(), NanoDollars::saturating_add).as_dollars()
        };
        self.cells.iter().map(sum).collect()
    }
}

fn check(
    table: &'static str,
    values: &[Vec<Option<f64>>],
    rows: usize,
    columns: usize,
    least: f64,
) -> Result<(), MatrixError> {
    let size = |what: String, found, expected| MatrixError::Size { table, what, found, expected };
    if values.len() != rows {
        return Err(size("rows".to_owned(), values.len(), rows));
    }
    for (row, entries) in values.iter().enumerate() {
        if entries.len() != columns {
            return Err(size(format!("entries in row {row}"), entries.len(), columns));
        }
        for (column, value) in entries.iter().enumerate() {
            if let Some(value) = value.filter(|value| *value < least) {
                return Err(MatrixError::Number { table, value, row, column });
            }
        }
    }
    Ok(())
}

fn read_space(combos: &[String], datapoints: usize) -> Result<Space, MatrixError> {
    let mut roles: Vec<Role> = Vec::new();
    let mut members = Vec::new();
    for (row, text) in combos.iter().enumerate() {
        let wrong = || MatrixError::Combo { row, text: text.clone() };
        let parts: Option<Vec<(&str, &str)>> =
            text.split(" + ").map(|part| part.split_once('=')).collect();
        let parts = parts.ok_or_else(wrong)?;
        if row == 0 {
            let role = |name: &str| Role { name: name.to_owned(), candidates: Vec::new() };
            roles = parts.iter().map(|(name, _)| role(name)).collect();
        }
        if parts.len() != roles.len() {
            return Err(wrong());
        }
        let mut combo = Vec::with_capacity(roles.len());
        for ((name, model), role) in parts.into_iter().zip(&mut roles) {
            if role.name != name {
                return Err(wrong());
            }
            let place = role.candidates.iter().position(|candidate| candidate == model);
            combo.push(place.unwrap_or(role.candidates.len()));
            if place.is_none() {
                role.candidates.push(model.to_owned());
            }
        }
        members.push(combo);
    }
    Ok(Space::from_combos(roles, members, datapoints)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = r#"{"benchmark": "b", "combos": ["p=x + s=y", "p=z + s=y"], "datapoints": [0, "1"],
        "score": [[1, null], [0, 1]], "latency_s": [[1, 1], [2, null]], "cost_usd": [[0.5, 0.1], [1, 2]]}"#;

    #[test]
    fn a_matrix_is_read_with_what_was_not_recorded() {
        let matrix = Matrix::parse(GOOD).unwrap();
        assert_eq!(matrix.space.describe(1), "p=z + s=y");
        assert_eq!((matrix.truth(), matrix.costs()), (vec![1.0, 0.5], vec![0.6, 3.0]));
        assert_eq!(matrix.cells[0][1].score, None);
    }

    #[test]
    fn what_does_not_fit_is_told() {
        let table = [
            (GOOD.replace("[0, \"1\"]", "[0]"), "`score` has 2 entries in row 0, not 1"),
            (GOOD.replace("[[1, null], [0, 1]]", "[[1, null]]"), "`score` has 1 rows, not 2"),
            (
                GOOD.replace("p=z + s=y", "z"),
                "combination 1 is `z`, not `role=model + role=model` with the roles of the first",
            ),
            (GOOD.replace("[1, 2]]}", "[1, -2]]}"), "`cost_usd` has -2 at row 1, column 1"),
            ("{}".to_owned(), "not a matrix"),
        ];
        for (text, expected) in table {
            assert_eq!(Matrix::parse(&text).unwrap_err().to_string(), expected);
        }
    }
}
