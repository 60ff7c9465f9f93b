//! Converts a scalable filter in two parts to the contents of a file: a payload of `DUMP`, or a
//! snapshot.

use tamis::Answers;
use tamis_formats::{ChangeError, Contents, FilterInfo, StoredFilter};

use crate::value::Value;
use crate::value::scalable_bloom::{ExpandError, ScalableBloom};

impl Value {
    /// Converts a filter with a layout of Tamis to the contents of a file. Returns `None` if the value is not a filter
    /// with a layout of Tamis, or if there is not enough memory.
    ///
    /// A filter in one part becomes a [`TamisFile`](tamis_formats::TamisFile). A filter of `BF.RESERVE` has two parts
    /// after the filter has grown beyond its reservation. No Tamis file can store two parts, so a file stores a filter
    /// in two parts as a payload of `DUMP`.
    ///
    /// # Examples
    ///
    /// ```
    /// use tamis_commands::{ScalableBloom, Value};
    ///
    /// let mut seen = ScalableBloom::reserve(1, 0.01, Some(2))?;
    /// for hash in [1, 2] {
    ///     assert_eq!(seen.insert_hash(hash), Ok(true));
    /// }
    /// let value = Value::Bloom(Box::new(seen));
    /// let image = value.to_image();
    /// let contents = value.into_contents().unwrap();
    /// assert_eq!((contents.info().items, contents.server_image()), (2.0, Some(image)));
    /// # Ok::<(), tamis::PlanError>(())
    /// ```
    #[must_use]
    pub fn into_contents(self) -> Option<Contents> {
        match self {
            Value::Filter(file) => Some(Contents::new(*file)),
            Value::Bloom(filter) => match filter.to_file() {
                Ok(Some(file)) => Some(Contents::new(file.into_owned())),
                Ok(None) => Some(Contents::new(StoredBloom(filter))),
                Err(_) => None,
            },
            _ => None,
        }
    }
}

/// A filter in two parts.
#[derive(Debug)]
struct StoredBloom(Box<ScalableBloom>);

impl StoredBloom {
    fn image(&self) -> Vec<u8> {
        let mut image = Vec::new();
        let mut out = crate::value::serialization::Writer::whole(&mut image);
        // Writing to memory never fails.
        _ = Value::write_bloom(&self.0, &mut out);
        image
    }
}

impl Clone for StoredBloom {
    fn clone(&self) -> Self {
        match Value::from_image(&self.image()) {
            Ok(Value::Bloom(filter)) => Self(filter),
            other => unreachable!("it is the image of such a filter: {other:?}"),
        }
    }
}

impl PartialEq for StoredBloom {
    fn eq(&self, other: &Self) -> bool {
        self.image() == other.image()
    }
}

impl StoredFilter for StoredBloom {
    fn contains_each(&self, keys: &[&[u8]], answers: &mut Answers) {
        self.0.contains_each(keys, answers);
    }

    fn insert_each(&mut self, keys: &[&[u8]], answers: &mut Answers) -> Result<(), ChangeError> {
        self.0.insert_each(keys, answers).map_err(|(_, error)| {
            let (full, no_memory) = (
                "the filter is full and does not grow: reserve a larger one",
                "the filter cannot grow: there is not enough memory",
            );
            match error {
                ExpandError::Full => ChangeError::Full(full.into()),
                ExpandError::NoRoom => ChangeError::Full(no_memory.into()),
            }
        })
    }

    fn merge(&mut self, other: &Self) -> Result<bool, ChangeError> {
        if !self.0.is_made_as(&other.0) {
            return Ok(false);
        }
        self.0
            .merge(&[&other.0])
            .map_err(|error| ChangeError::Refused(error.to_string().into()))?;
        Ok(true)
    }

    fn server_image(&self) -> Option<Vec<u8>> {
        Some(self.image())
    }

    fn info(&self) -> FilterInfo {
        let bytes = self.0.memory_bytes();
        FilterInfo {
            kind: self.0.kind_name(),
            bits: 8 * bytes,
            bytes,
            details: vec![("created by", "BF.RESERVE in a layout of Tamis, and has grown".into())],
            ..self.0.info(false)
        }
    }
}
