//! Parses the field `source` of a set: one source, or a list of sources.

use std::collections::HashSet;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use serde::Deserialize;
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};
use tamis_sources::SourceKind;

use crate::config::max_tables::{MAX_TABLES, too_many};
use crate::config::setting::{InvalidValue, invalid};
use crate::config::source::SourceTable;

/// The field `source` of a set: the table `source = { … }`, or the list `[[ids.NAME.source]]`.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum SourceTables {
    One(Box<SourceTable>),
    List(Vec<SourceTable>),
}

impl<'de> Deserialize<'de> for SourceTables {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // An untagged enum would lose the messages about the fields of a source.
        struct OneOrList;

        impl<'de> Visitor<'de> for OneOrList {
            type Value = SourceTables;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a source such as { kind = \"lines\", path = \"ids.txt\" }, or a list of sources")
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<SourceTables, A::Error> {
                let source = SourceTable::deserialize(MapAccessDeserializer::new(map))?;
                Ok(SourceTables::One(Box::new(source)))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<SourceTables, A::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(list)).map(SourceTables::List)
            }
        }

        deserializer.deserialize_any(OneOrList)
    }
}

impl SourceTables {
    fn list(&self) -> &[SourceTable] {
        match self {
            Self::One(source) => std::slice::from_ref(source),
            Self::List(sources) => sources,
        }
    }

    /// Tests whether a source is a filter that responses of the program must prove.
    pub(super) fn needs_proof(&self) -> bool {
        self.list().iter().any(SourceTable::needs_proof)
    }

    /// Tests whether each source reports each update of a row, also if the id of the row stays the same.
    pub(super) fn reports_updates(&self) -> bool {
        self.list().iter().all(SourceTable::reports_updates)
    }

    /// Returns the settings of all sources: one source for each table. Paths are relative to `folder`.
    pub(super) fn kinds(&self, folder: &Path) -> Result<Vec<Arc<dyn SourceKind>>, InvalidValue> {
        let mut kinds = Vec::new();
        for (i, source) in self.list().iter().enumerate() {
            let in_source = |error: InvalidValue| match self {
                Self::One(_) => error.with_prefix("source."),
                Self::List(_) => error.with_prefix(format_args!("source {}: ", i + 1)),
            };
            kinds.extend(source.kinds(folder).map_err(in_source)?);
        }
        self.check(&kinds).map_err(|message| invalid("source", message))?;
        Ok(kinds)
    }

    fn check(&self, kinds: &[Arc<dyn SourceKind>]) -> Result<(), String> {
        if kinds.is_empty() {
            return Err("the list is empty".to_owned());
        }
        if kinds.len() > MAX_TABLES {
            return Err(too_many());
        }
        if kinds.len() > 1 && !self.list().iter().all(SourceTable::is_combinable) {
            return Err(
                "a filter, a Redis key and a leader are the only source of their set; several \
                 sources must be lists or databases"
                    .to_owned(),
            );
        }
        let mut names = HashSet::new();
        match kinds.iter().map(|kind| kind.name()).find(|name| !names.insert(name.clone())) {
            Some(name) => Err(format!("two sources are equal: {name}")),
            None => Ok(()),
        }
    }
}
