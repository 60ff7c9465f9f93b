//! Reads the types of an ORC file. The types form a tree, and the file stores the nodes in order.

use crate::filters::orc_file::error::OrcError;
use crate::filters::orc_file::protobuf::{Fields, Value, packed};

/// The maximum number of columns in a file, including the members of structs, lists and maps.
const MOST_COLUMNS: usize = 100_000;
/// The maximum depth of nested structs, lists and maps.
const MOST_DEPTH: u32 = 64;
/// The maximum total size of the paths of all columns, in bytes. Each path repeats the names of its
/// structs.
const MOST_PATH_BYTES: usize = 16 << 20;

/// The kind of a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TypeKind {
    /// `BOOLEAN`
    Boolean,
    /// `BYTE`, `SHORT`, `INT` and `LONG`, with their bits.
    Integer(u32),
    /// `FLOAT`
    Float,
    /// `DOUBLE`
    Double,
    /// `STRING`
    String,
    /// `BINARY`
    Binary,
    /// `TIMESTAMP`: local times.
    Timestamp,
    /// `TIMESTAMP_INSTANT`: times in UTC.
    TimestampInstant,
    /// `LIST`
    List,
    /// `MAP`
    Map,
    /// `STRUCT`
    Struct,
    /// `UNION`
    Union,
    /// `DECIMAL`
    Decimal {
        /// The number of digits after the decimal point.
        scale: u32,
    },
    /// `DATE`
    Date,
    /// `VARCHAR`
    Varchar,
    /// `CHAR`
    Char,
    /// A type of a later version of ORC.
    Other(u64),
}

impl TypeKind {
    fn of(kind: u64, scale: u64) -> Self {
        match kind {
            0 => TypeKind::Boolean,
            1 => TypeKind::Integer(8),
            2 => TypeKind::Integer(16),
            3 => TypeKind::Integer(32),
            4 => TypeKind::Integer(64),
            5 => TypeKind::Float,
            6 => TypeKind::Double,
            7 => TypeKind::String,
            8 => TypeKind::Binary,
            9 => TypeKind::Timestamp,
            10 => TypeKind::List,
            11 => TypeKind::Map,
            12 => TypeKind::Struct,
            13 => TypeKind::Union,
            14 => TypeKind::Decimal { scale: u32::try_from(scale).unwrap_or(u32::MAX) },
            15 => TypeKind::Date,
            16 => TypeKind::Varchar,
            17 => TypeKind::Char,
            18 => TypeKind::TimestampInstant,
            other => TypeKind::Other(other),
        }
    }

    /// Tests whether a column of this type has members. In a column with members, the members
    /// contain the values.
    fn has_members(self) -> bool {
        matches!(self, TypeKind::List | TypeKind::Map | TypeKind::Struct | TypeKind::Union)
    }
}

/// A node of the tree of types.
#[derive(Debug)]
struct Node {
    kind: TypeKind,
    members: Vec<u32>,
    /// The names of the members of a struct.
    names: Vec<String>,
    /// The parent, and the name of this node in the parent. `None` for the root.
    parent: Option<(u32, String)>,
    depth: u32,
}

/// The types of an ORC file.
#[derive(Debug, Default)]
pub struct Schema {
    nodes: Vec<Node>,
    /// The total number of names in all nodes.
    names: usize,
}

/// A column with values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// The number of the column in the file.
    pub id: u32,
    /// The type of the values in the column.
    pub kind: TypeKind,
    /// The names from the root of the schema to the column. As in ORC, an element of a list
    /// is `_elem`, and the parts of a map are `_key` and `_value`.
    pub path: Vec<String>,
}

impl Schema {
    /// Appends a type. `message` is a message of the footer.
    pub(super) fn push(&mut self, message: &[u8]) -> Result<(), OrcError> {
        let (mut kind, mut scale) = (0, 0);
        let (mut members, mut names) = (Vec::new(), Vec::new());
        for field in Fields::new(message) {
            match field? {
                (1, Value::Number(number)) => kind = number,
                (2, Value::Bytes(list)) => {
                    for member in packed(list) {
                        push_member(&mut members, member?)?;
                    }
                }
                (2, Value::Number(member)) => push_member(&mut members, member)?,
                (3, Value::Bytes(name)) => {
                    check_count(self.names)?;
                    self.names += 1;
                    names.push(String::from_utf8_lossy(name).into_owned());
                }
                (6, Value::Number(number)) => scale = number,
                _ => {}
            }
        }
        check_count(self.nodes.len())?;
        let kind = TypeKind::of(kind, scale);
        self.nodes.push(Node { kind, members, names, parent: None, depth: 0 });
        Ok(())
    }

    /// Links the types to their parents. Each type except the first type is a member of one type
    /// before it.
    pub(super) fn link(&mut self) -> Result<(), OrcError> {
        const NO_TREE: OrcError = OrcError::Damaged("the types of its footer do not form a tree");
        for id in 0..self.nodes.len() {
            let node = &mut self.nodes[id];
            if id > 0 && node.parent.is_none() {
                return Err(NO_TREE);
            }
            let (kind, depth) = (node.kind, node.depth + 1);
            let members = std::mem::take(&mut node.members);
            let mut names = std::mem::take(&mut node.names).into_iter();
            if depth > MOST_DEPTH && !members.is_empty() {
                return Err(OrcError::Damaged("its types are more than 64 levels deep"));
            }
            for (index, member) in members.into_iter().enumerate() {
                let name = match kind {
                    TypeKind::List => "_elem".into(),
                    TypeKind::Map if index == 0 => "_key".into(),
                    TypeKind::Map => "_value".into(),
                    TypeKind::Union => index.to_string(),
                    _ => {
                        names.next().ok_or(OrcError::Damaged("a member of a struct has no name"))?
                    }
                };
                let child = self.nodes.get_mut(member as usize).ok_or(NO_TREE)?;
                if member as usize <= id || child.parent.is_some() {
                    return Err(NO_TREE);
                }
                (child.parent, child.depth) = (Some((id as u32, name)), depth);
            }
        }
        Ok(())
    }

    /// Returns the columns with values, in the order of the file.
    ///
    /// # Errors
    ///
    /// [`OrcError`] if the paths of all columns together exceed the limit of `MOST_PATH_BYTES`.
    pub fn columns(&self) -> Result<Vec<Column>, OrcError> {
        let mut columns = Vec::new();
        let mut path_bytes = 0;
        for (id, node) in self.nodes.iter().enumerate() {
            if node.kind.has_members() {
                continue;
            }
            let (mut path, mut at) = (Vec::new(), node);
            while let Some((parent, name)) = &at.parent {
                path_bytes += name.len();
                if path_bytes > MOST_PATH_BYTES {
                    return Err(OrcError::Refused(
                        "the names of its columns have more than 16 MiB, which tamis does not read"
                            .into(),
                    ));
                }
                path.push(name.clone());
                at = &self.nodes[*parent as usize];
            }
            path.reverse();
            columns.push(Column { id: id as u32, kind: node.kind, path });
        }
        Ok(columns)
    }

    /// Returns for each column number whether the column is one of `roots`, or a member of one
    /// of `roots`.
    pub(super) fn inside(&self, roots: &[u32]) -> Vec<bool> {
        let mut inside = vec![false; self.nodes.len()];
        for root in roots {
            if let Some(root) = inside.get_mut(*root as usize) {
                *root = true;
            }
        }
        for (id, node) in self.nodes.iter().enumerate() {
            // In the list of nodes, a parent is before its members.
            if let Some((parent, _)) = node.parent {
                inside[id] |= inside[parent as usize];
            }
        }
        inside
    }
}

fn push_member(members: &mut Vec<u32>, member: u64) -> Result<(), OrcError> {
    check_count(members.len())?;
    members.push(u32::try_from(member).unwrap_or(u32::MAX));
    Ok(())
}

/// Rejects one more column if the file already has the maximum number of columns.
fn check_count(count: usize) -> Result<(), OrcError> {
    if count >= MOST_COLUMNS {
        return Err(OrcError::Refused(
            "has more than 100,000 columns, which tamis does not read".into(),
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Encodes a type as its message: the kind, the members and their names.
    fn message(kind: u8, members: &[u8], names: &[&str]) -> Vec<u8> {
        let mut message = vec![0x08, kind, 0x12, members.len() as u8];
        message.extend_from_slice(members);
        for name in names {
            message.extend([0x1a, name.len() as u8]);
            message.extend_from_slice(name.as_bytes());
        }
        message
    }

    fn schema(messages: &[Vec<u8>]) -> Result<Schema, OrcError> {
        let mut schema = Schema::default();
        messages.iter().try_for_each(|message| schema.push(message))?;
        schema.link().map(|()| schema)
    }

    #[test]
    fn columns_have_the_path_of_their_members() {
        let schema = schema(&[
            message(12, &[1, 2, 4], &["a", "b", "c.d"]),
            message(4, &[], &[]),
            message(10, &[3], &[]),
            message(7, &[], &[]),
            message(11, &[5, 6], &[]),
            message(15, &[], &[]),
            message(99, &[], &[]),
        ])
        .unwrap();
        let columns = schema.columns().unwrap();
        let paths: Vec<_> = columns.iter().map(|it| (it.id, it.path.join("/"))).collect();
        let expected = [(1, "a"), (3, "b/_elem"), (5, "c.d/_key"), (6, "c.d/_value")];
        assert_eq!(paths, expected.map(|(id, path)| (id, path.to_owned())));
        assert_eq!(columns[3].kind, TypeKind::Other(99));
        let inside = [false, false, false, false, true, true, true];
        assert_eq!(schema.inside(&[4, 9]), inside);
    }

    #[test]
    fn types_that_are_no_tree_are_damaged() {
        for messages in [
            &[message(12, &[0], &["a"])][..],
            &[message(12, &[7], &["a"])],
            &[message(12, &[1], &[]), message(4, &[], &[])],
            &[message(12, &[1, 1], &["a", "b"]), message(4, &[], &[])],
            &[message(12, &[], &[]), message(4, &[], &[])],
            &[message(12, &[1], &["a"]), message(10, &[1], &[])],
        ] {
            assert!(matches!(schema(messages), Err(OrcError::Damaged(_))), "{messages:?}");
        }
        let nested: Vec<_> = (1..=100).map(|id| message(10, &[id], &[])).collect();
        assert!(schema(&nested).is_err(), "100 lists in each other");
    }

    #[test]
    fn more_columns_and_longer_paths_than_any_schema_has_are_refused() {
        let mut schema = Schema::default();
        for _ in 0..MOST_COLUMNS {
            schema.push(&[]).unwrap();
        }
        assert!(schema.push(&[]).is_err());
        assert!(Schema::default().push(&message(12, &[1; 100], &[]).repeat(1001)).is_err());
    }
}
