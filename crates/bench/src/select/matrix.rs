//! Recorded matrices of combinations and datapoints.

use bakeoff_core::NanoDollars;
use bakeoff_select::{Observation, Role, Space, SpaceError};
use serde::Deserialize;
use serde_json::Value;

/// Scores, costs and latencies of all cells.
#[derive(Debug, Clone)]
pub struct Matrix {
    /// Name.
    pub name: String,
    /// Combinations and datapoints.
    pub space: Space,
    /// Observations of the datapoints, by combination.
    pub cells: Vec<Vec<Observation>>,
}

/// Error of a matrix file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MatrixError {
    /// Invalid JSON or missing fields.
    #[error("not a matrix")]
    Json(#[from] serde_json::Error),
    /// A combination that is not `role=model + role=model`.
    #[error(
        "combination {row} is `{text}`, not `role=model + role=model` with the roles of the first"
    )]
    Combo {
        /// Index of the combination, from 0.
        row: usize,
        /// Text of the combination.
        text: String,
    },
    /// A table whose size does not match the combinations and datapoints.
    #[error("`{table}` has {found} {unit}, not {expected}")]
    Size {
        /// Name of the table.
        table: &'static str,
        /// Counted unit: rows, or entries of a row.
        unit: String,
        /// Actual number.
        found: usize,
        /// Expected number.
        expected: usize,
    },
    /// A number out of range.
    #[error("`{table}` has {value} at row {row}, column {column}")]
    Number {
        /// Name of the table.
        table: &'static str,
        /// The number.
        value: f64,
        /// Index of the combination.
        row: usize,
        /// Index of the datapoint.
        column: usize,
    },
    /// The matrix has no combinations or datapoints.
    #[error(transparent)]
    Space(#[from] SpaceError),
}

#[derive(Deserialize)]
struct MatrixFile {
    benchmark: String,
    combos: Vec<String>,
    datapoints: Vec<Value>,
    score: Vec<Vec<Option<f64>>>,
    latency_s: Vec<Vec<Option<f64>>>,
    cost_usd: Vec<Vec<Option<f64>>>,
}

impl Matrix {
    /// Parses a matrix; `null` means not recorded. Combinations are `role=model + role=model`, or names of models.
    ///
    /// # Errors
    ///
    /// Fails if the file is not a matrix or its parts are inconsistent.
    pub fn parse(text: &str) -> Result<Matrix, MatrixError> {
        let file: MatrixFile = serde_json::from_str(text)?;
        let (rows, columns) = (file.combos.len(), file.datapoints.len());
        validate_table("score", &file.score, rows, columns, f64::NEG_INFINITY)?;
        validate_table("latency_s", &file.latency_s, rows, columns, 0.0)?;
        validate_table("cost_usd", &file.cost_usd, rows, columns, 0.0)?;
        let space = parse_space(&file.combos, columns)?;
        let cell = |row: usize, column: usize| {
            let cost = file.cost_usd[row][column].and_then(NanoDollars::from_dollars);
            Observation {
                score: file.score[row][column],
                cost,
                paid: cost.unwrap_or_default(),
                latency: file.latency_s[row][column].unwrap_or(0.0),
            }
        };
        let cells = (0..rows).map(|row| (0..columns).map(|column| cell(row, column)).collect());
        Ok(Matrix { name: file.benchmark, space, cells: cells.collect() })
    }

    /// Returns the mean of each combination over recorded scores; negative infinity without any.
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

    /// Returns the price of each candidate of each role: the mean cost of a cell of its combinations. A matrix does not
    /// have the prices per token.
    pub fn prices(&self) -> Vec<Vec<Option<NanoDollars>>> {
        let costs = self.costs();
        let price = |role: usize, candidate: usize| {
            let members = |combo: &usize| self.space.members(*combo)[role] as usize == candidate;
            let combos: Vec<usize> = (0..self.space.combos()).filter(members).collect();
            let sum: f64 = combos.iter().map(|&combo| costs[combo]).sum();
            NanoDollars::from_dollars(sum / (combos.len() * self.space.datapoints()) as f64)
        };
        let roles = self.space.roles().iter().enumerate();
        let prices = |(role, of): (usize, &Role)| {
            (0..of.candidates.len()).map(|candidate| price(role, candidate)).collect()
        };
        roles.map(prices).collect()
    }

    /// Returns the cost of each combination over all datapoints, in dollars.
    pub fn costs(&self) -> Vec<f64> {
        let sum = |row: &Vec<Observation>| {
            let costs = row.iter().filter_map(|cell| cell.cost);
            costs.fold(NanoDollars::default(), NanoDollars::saturating_add).as_dollars()
        };
        self.cells.iter().map(sum).collect()
    }
}

fn validate_table(
    table: &'static str,
    values: &[Vec<Option<f64>>],
    rows: usize,
    columns: usize,
    minimum: f64,
) -> Result<(), MatrixError> {
    let size = |unit: String, found, expected| MatrixError::Size { table, unit, found, expected };
    if values.len() != rows {
        return Err(size("rows".to_owned(), values.len(), rows));
    }
    for (row, entries) in values.iter().enumerate() {
        if entries.len() != columns {
            return Err(size(format!("entries in row {row}"), entries.len(), columns));
        }
        for (column, value) in entries.iter().enumerate() {
            if let Some(value) = value.filter(|value| *value < minimum) {
                return Err(MatrixError::Number { table, value, row, column });
            }
        }
    }
    Ok(())
}

fn parse_space(combos: &[String], datapoints: usize) -> Result<Space, MatrixError> {
    let mut roles: Vec<Role> = Vec::new();
    let mut members = Vec::new();
    // Without roles, a combination is the name of a model.
    let has_roles = combos.iter().any(|text| text.contains('='));
    for (row, text) in combos.iter().enumerate() {
        let invalid = || MatrixError::Combo { row, text: text.clone() };
        let parts: Option<Vec<(&str, &str)>> = match has_roles {
            true => text.split(" + ").map(|part| part.split_once('=')).collect(),
            false => Some(vec![("model", text)]),
        };
        let parts = parts.ok_or_else(invalid)?;
        if row == 0 {
            let role = |name: &str| Role { name: name.to_owned(), candidates: Vec::new() };
            roles = parts.iter().map(|(name, _)| role(name)).collect();
        }
        if parts.len() != roles.len() {
            return Err(invalid());
        }
        let mut combo = Vec::with_capacity(roles.len());
        for ((name, model), role) in parts.into_iter().zip(&mut roles) {
            if role.name != name {
                return Err(invalid());
            }
            let index = role.candidates.iter().position(|candidate| candidate == model);
            combo.push(index.unwrap_or(role.candidates.len()));
            if index.is_none() {
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

    const VALID: &str = r#"{"benchmark": "b", "combos": ["p=x + s=y", "p=z + s=y"], "datapoints": [0, "1"],
        "score": [[1, null], [0, 1]], "latency_s": [[1, 1], [2, null]], "cost_usd": [[0.5, 0.1], [1, 2]]}"#;

    #[test]
    fn missing_scores_are_parsed_as_absent() {
        let matrix = Matrix::parse(VALID).unwrap();
        assert_eq!(matrix.space.describe(1), "p=z + s=y");
        assert_eq!((matrix.truth(), matrix.costs()), (vec![1.0, 0.5], vec![0.6, 3.0]));
        assert_eq!(matrix.cells[0][1].score, None);
    }

    #[test]
    fn inconsistent_matrices_are_rejected() {
        let table = [
            (VALID.replace("[0, \"1\"]", "[0]"), "`score` has 2 entries in row 0, not 1"),
            (VALID.replace("[[1, null], [0, 1]]", "[[1, null]]"), "`score` has 1 rows, not 2"),
            (
                VALID.replace("p=z + s=y", "z"),
                "combination 1 is `z`, not `role=model + role=model` with the roles of the first",
            ),
            (VALID.replace("[1, 2]]}", "[1, -2]]}"), "`cost_usd` has -2 at row 1, column 1"),
            ("{}".to_owned(), "not a matrix"),
        ];
        for (text, expected) in table {
            assert_eq!(Matrix::parse(&text).unwrap_err().to_string(), expected);
        }
    }
}
