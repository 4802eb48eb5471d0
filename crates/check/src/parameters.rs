//! Typed access to the parameters of a check.

use crate::Error;
use serde_json::{Map, Value};

/// The parameters of a check, with templates rendered.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Parameters<'a>(pub(crate) &'a Map<String, Value>);

impl<'a> Parameters<'a> {
    pub(crate) fn value(self, name: &str) -> Option<&'a Value> {
        self.0.get(name)
    }

    pub(crate) fn text(self, name: &str) -> Option<&'a str> {
        self.value(name)?.as_str()
    }

    pub(crate) fn required_text(self, name: &'static str) -> Result<String, Error> {
        self.text(name).map(str::to_owned).ok_or_else(|| missing(name))
    }

    /// Returns a text that must not be empty, because an empty one occurs in every output.
    pub(crate) fn non_empty_text(self, name: &'static str) -> Result<String, Error> {
        let text = self.required_text(name)?;
        if text.is_empty() { Err(Error::new(name, "the value is empty")) } else { Ok(text) }
    }

    pub(crate) fn texts(self, name: &'static str) -> Result<Vec<String>, Error> {
        let items = self.value(name).and_then(Value::as_array).ok_or_else(|| missing(name))?;
        let text = |item: &Value| item.as_str().map(str::to_owned);
        let texts: Vec<String> =
            items.iter().map(text).collect::<Option<_>>().ok_or_else(|| missing(name))?;
        if texts.is_empty() { Err(Error::new(name, "the list is empty")) } else { Ok(texts) }
    }

    /// Returns a list of texts of which none is empty.
    pub(crate) fn non_empty_texts(self, name: &'static str) -> Result<Vec<String>, Error> {
        let texts = self.texts(name)?;
        match texts.iter().any(String::is_empty) {
            true => Err(Error::new(name, "one of the values is empty")),
            false => Ok(texts),
        }
    }

    pub(crate) fn boolean(self, name: &str) -> Option<bool> {
        self.value(name)?.as_bool()
    }

    pub(crate) fn ignore_case(self) -> bool {
        self.boolean("ignore_case").unwrap_or(false)
    }

    pub(crate) fn count(self, name: &str) -> Option<u64> {
        self.value(name)?.as_u64()
    }

    pub(crate) fn required_count(self, name: &'static str) -> Result<u64, Error> {
        self.count(name).ok_or_else(|| missing(name))
    }

    pub(crate) fn integer(self, name: &str) -> Option<i64> {
        self.value(name)?.as_i64()
    }

    pub(crate) fn number(self, name: &str) -> Option<f64> {
        self.value(name)?.as_f64()
    }

    pub(crate) fn table(self, name: &str) -> Option<&'a Map<String, Value>> {
        self.value(name)?.as_object()
    }

    /// Returns the name of the only parameter present among several.
    pub(crate) fn one_of(self, names: &[&'static str]) -> Result<&'static str, Error> {
        let mut given = names.iter().filter(|name| self.value(name).is_some());
        let all = || names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(" or ");
        match (given.next(), given.next()) {
            (Some(name), None) => Ok(name),
            (None, _) => Err(Error::new("kind", format!("the check needs {}", all()))),
            (Some(_), Some(second)) => {
                Err(Error::new(second, format!("the check has either {}, not both", all())))
            }
        }
    }
}

pub(crate) fn missing(name: &'static str) -> Error {
    Error::new(name, format!("`{name}` is missing or of the wrong type"))
}

/// A range that may be open on either side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CountBounds {
    /// Lower bound.
    pub min: Option<u64>,
    /// Upper bound.
    pub max: Option<u64>,
}

impl CountBounds {
    pub(crate) fn build(parameters: Parameters<'_>) -> Result<CountBounds, Error> {
        let bounds = CountBounds { min: parameters.count("min"), max: parameters.count("max") };
        match bounds {
            CountBounds { min: None, max: None } => {
                Err(Error::new("kind", "the check needs `min` or `max`"))
            }
            CountBounds { min: Some(min), max: Some(max) } if min > max => {
                Err(Error::new("min", format!("`min` ({min}) is greater than `max` ({max})")))
            }
            bounds => Ok(bounds),
        }
    }

    pub(crate) fn contains(self, number: u64) -> bool {
        self.min.is_none_or(|min| min <= number) && self.max.is_none_or(|max| number <= max)
    }
}

impl std::fmt::Display for CountBounds {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.min, self.max) {
            (Some(min), Some(max)) if min == max => write!(f, "exactly {min}"),
            (Some(min), Some(max)) => write!(f, "{min} to {max}"),
            (Some(min), None) => write!(f, "at least {min}"),
            (None, Some(max)) => write!(f, "at most {max}"),
            (None, None) => write!(f, "any number"),
        }
    }
}
