//! Applies the changes of one transaction after another.

use std::collections::HashSet;

use crate::errors::source_error::SourceError;
use crate::kinds::postgres::lsn::Lsn;
use crate::kinds::postgres::pgoutput::{Change, Old, Relation, Tuple, Value};
use crate::kinds::postgres::table::Table;
use crate::source::run::Run;

/// The deletions of a transaction that wait for its end. With more, all ids are read again.
const MAX_DELETED: usize = 1 << 20;

/// What a change means for the follower.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    None,
    /// The transaction has ended, and so has everything before this place.
    Committed(Lsn),
    /// Ids are known that may not exist any more. All must be read again.
    NeedsRead,
    /// The stream has defined the table. It does so before its first change, and again after each command that alters the
    /// table: two rows may now have one id.
    Defined,
    /// The stream no longer has the ids of the table.
    OtherTable,
}

/// The transaction that the stream has now.
pub(super) struct Transaction<'r> {
    run: &'r Run,
    table: &'r Table,
    /// The place of the id among the columns that the stream has.
    column: Option<usize>,
    deleted: HashSet<Vec<u8>>,
}

/// The stream has a value that the source cannot use.
enum Unusable {
    /// A change came before the definition of its relation, or has other columns.
    Undefined,
    /// The log has the key of a deleted row, and the id is no part of it.
    NoIdentity,
}

impl<'r> Transaction<'r> {
    pub(super) fn new(run: &'r Run, table: &'r Table) -> Self {
        Self { run, table, column: None, deleted: HashSet::new() }
    }

    /// Applies a change. New ids pass at once: all changes that the stream has are committed.
    pub(super) fn apply(&mut self, change: Change) -> Result<Effect, SourceError> {
        let table = self.table.ids.relation;
        let applied = match change {
            Change::Commit { end } => {
                for id in self.deleted.drain() {
                    self.run.ids.delete(&id);
                }
                return Ok(Effect::Committed(end));
            }
            Change::Relation(relation) if relation.id == table => {
                return Ok(self.define(&relation));
            }
            Change::Truncate { relations } if relations.contains(&table) => {
                return Ok(Effect::NeedsRead);
            }
            Change::Insert { relation, new } if relation == table => {
                self.value(&new).map(|new| (Value::Null, new))
            }
            Change::Update { relation, old, new } if relation == table => self.update(old, &new),
            Change::Delete { relation, old } if relation == table => {
                self.old_value(&old).map(|old| (old, Value::Null))
            }
            _ => return Ok(Effect::None),
        };
        match applied {
            Ok((old, new)) => self.replace(old, new),
            Err(Unusable::NoIdentity) => Ok(Effect::OtherTable),
            Err(Unusable::Undefined) => {
                let message = "the stream has a change of an unknown relation";
                Err(SourceError::Connect(message.to_owned()))
            }
        }
    }

    /// Finds the column of ids.
    fn define(&mut self, relation: &Relation) -> Effect {
        let column = (self.table.column.as_bytes(), self.table.column_type);
        let columns = relation.columns.iter();
        self.column = columns.map(|(name, kind)| (&**name, *kind)).position(|it| it == column);
        if self.column.is_some() { Effect::Defined } else { Effect::OtherTable }
    }

    /// Returns the value of the column of ids.
    fn value(&self, tuple: &Tuple) -> Result<Value, Unusable> {
        let column = self.column.ok_or(Unusable::Undefined)?;
        tuple.get(column).cloned().ok_or(Unusable::Undefined)
    }

    fn old_value(&self, old: &Old) -> Result<Value, Unusable> {
        let value = self.value(&old.values)?;
        if old.is_key && value == Value::Null { Err(Unusable::NoIdentity) } else { Ok(value) }
    }

    /// Returns the value before and after an update. The one before is NULL if it is the same.
    fn update(&self, old: Option<Old>, new: &Tuple) -> Result<(Value, Value), Unusable> {
        let new = self.value(new)?;
        let old = old.map_or(Ok(Value::Null), |old| self.old_value(&old))?;
        let is_same = old == new || new == Value::Unchanged;
        Ok((if is_same { Value::Null } else { old }, new))
    }

    /// Replaces an id by another one. NULL is no id.
    fn replace(&mut self, old: Value, new: Value) -> Result<Effect, SourceError> {
        let kind = self.table.ids.kind;
        if let Value::Text(old) = old
            && self.table.is_unique
            && let Some(id) = self.run.canonical(kind.id_text(&old))
        {
            self.deleted.insert(id.into_owned());
        }
        if let Value::Text(new) = new {
            let Self { run, deleted, .. } = self;
            run.insert_live(kind.id_text(&new), |id| _ = deleted.remove(id))?;
        }
        if self.deleted.len() > MAX_DELETED {
            // The ids pass until all are read again.
            self.deleted.clear();
            return Ok(Effect::NeedsRead);
        }
        Ok(Effect::None)
    }
}
