//! The commands that create a new filter on another server, such as a replica.

use crate::batch::Family;
use crate::value::partial_load::PartialLoad;
use crate::value::serialization;

/// A command that loads a part of a filter: name, position and data. The caller adds the key as the
/// first argument.
pub type LoadCommand = (&'static str, i64, Vec<u8>);

/// Returns the commands that create the filter of a [new image](crate::Value::new_image) on another
/// server. The settings of the other server do not affect the filter. RedisBloom can run the
/// commands if the filter has a layout of RedisBloom.
///
/// # Panics
///
/// Panics if the image is shorter than a new image.
///
/// # Examples
///
/// ```
/// use tamis_commands::{Env, Handler, ScalableBloom, Settings, Value, find, load_commands};
/// use tamis_resp::Protocol;
///
/// let new = Value::Bloom(Box::new(ScalableBloom::reserve(1000, 0.01, Some(2))?));
/// let settings = Settings::default();
/// let env = Env::new(&settings, Protocol::Resp3, 0);
/// let mut other = None;
/// for (name, position, data) in load_commands(&new.new_image()) {
///     let Handler::Key(handler) = find(name.as_bytes()).unwrap().handler else { unreachable!() };
///     let position = position.to_string();
///     handler.run(&mut other, &[name.as_bytes(), b"key", position.as_bytes(), &data], &env);
/// }
/// assert_eq!(other.unwrap().to_image(), new.to_image());
/// # Ok::<(), tamis::PlanError>(())
/// ```
#[must_use]
pub fn load_commands(new_image: &[u8]) -> Vec<LoadCommand> {
    match serialization::redisbloom_header(new_image) {
        Some((Family::Cuckoo, header)) => vec![("CF.LOADCHUNK", 1, header.to_vec())],
        Some((_, header)) => vec![("BF.LOADCHUNK", 1, header.to_vec())],
        None => {
            let len = new_image.len();
            vec![
                ("BF.LOADCHUNK", 1, PartialLoad::header(len as u64)),
                ("BF.LOADCHUNK", len as i64 + 1, new_image.to_vec()),
            ]
        }
    }
}
