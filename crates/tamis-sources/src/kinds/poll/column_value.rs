//! A column value of a polled database.

use std::cmp::Ordering;

use serde_json::{Value, json};

/// A value as the database stores it. A text may contain any bytes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ColumnValue {
    Null,
    Integer(i64),
    Real(f64),
    Text(Vec<u8>),
    Blob(Vec<u8>),
}

impl ColumnValue {
    /// Encodes the value for a snapshot.
    pub(crate) fn encode(&self) -> Value {
        match self {
            Self::Null => Value::Null,
            Self::Integer(value) => json!({ "integer": value }),
            // The bits represent each value exactly, including infinity.
            Self::Real(value) => json!({ "real": value.to_bits() }),
            Self::Text(text) => json!({ "text": text }),
            Self::Blob(bytes) => json!({ "blob": bytes }),
        }
    }

    /// Decodes a value that `encode` has returned.
    pub(crate) fn decode(value: &Value) -> Option<Self> {
        let Value::Object(fields) = value else { return value.is_null().then_some(Self::Null) };
        let (kind, value) = fields.iter().next()?;
        let bytes = || {
            let bytes = value.as_array()?.iter();
            bytes.map(|byte| u8::try_from(byte.as_u64()?).ok()).collect::<Option<Vec<u8>>>()
        };
        match &**kind {
            "integer" => value.as_i64().map(Self::Integer),
            "real" => value.as_u64().map(f64::from_bits).map(Self::Real),
            "text" => bytes().map(Self::Text),
            "blob" => bytes().map(Self::Blob),
            _ => None,
        }
    }

    /// Compares two values in the order of the database. The order is valid for columns with the collation `BINARY`.
    pub(crate) fn order(&self, other: &Self) -> Ordering {
        let rank = |value: &Self| match value {
            Self::Null => 0,
            Self::Integer(_) | Self::Real(_) => 1,
            Self::Text(_) => 2,
            Self::Blob(_) => 3,
        };
        match (self, other) {
            (Self::Integer(one), Self::Integer(other)) => one.cmp(other),
            (Self::Real(one), Self::Real(other)) => one.total_cmp(other),
            (Self::Integer(one), Self::Real(other)) => (*one as f64).total_cmp(other),
            (Self::Real(one), Self::Integer(other)) => one.total_cmp(&(*other as f64)),
            (Self::Text(one), Self::Text(other)) | (Self::Blob(one), Self::Blob(other)) => {
                one.cmp(other)
            }
            _ => rank(self).cmp(&rank(other)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_the_order_of_the_database() {
        let text = |text: &str| ColumnValue::Text(text.into());
        let sorted = [
            ColumnValue::Null,
            ColumnValue::Real(-0.5),
            ColumnValue::Integer(3),
            ColumnValue::Real(3.5),
            text("2024"),
            text("2025"),
            ColumnValue::Blob(vec![0]),
        ];
        for (i, one) in sorted.iter().enumerate() {
            assert_eq!(ColumnValue::decode(&one.encode()).as_ref(), Some(one));
            for (j, other) in sorted.iter().enumerate() {
                assert_eq!(one.order(other), i.cmp(&j), "{one:?} {other:?}");
            }
        }
    }
}
