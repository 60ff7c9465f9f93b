// Writes bloom-filters.json: see README.md.
const fs = require('fs')
const { BloomFilter } = require('bloom-filters')

// Item i: text, with characters of one to four bytes.
const item = i => `item ${i} é你😀`.slice(0, 5 + (i % 20)).replace(/[\ud800-\udbff]$/, '')

const filters = []
for (const [bits, probes, seed, added] of [
  [1, 1, null, 1], [17, 14, null, 3], [96, 7, null, 10], [97, 7, 7, 12], [1000, 3, -5, 80],
  [2881, 20, 2 ** 40 + 7, 60],
]) {
  const filter = new BloomFilter(bits, probes)
  if (seed !== null) filter.seed = seed
  for (let i = 0; i < added; i++) filter.add(item(i))
  const json = JSON.stringify(filter.saveAsJSON())
  const again = BloomFilter.fromJSON(JSON.parse(json))
  if (JSON.stringify(again.saveAsJSON()) !== json) throw new Error('not read back')
  let has = ''
  for (let i = 0; i < 400; i++) has += again.has(item(i)) ? '1' : '0'
  filters.push({ bits, probes, seed: filter.seed, added, json, has_0_399: has })
}

const plans = []
for (const items of [1, 2, 7, 10, 100, 12345, 1000000])
  for (const rate of [0.9, 0.5, 0.1, 0.03, 0.01, 0.001, 1e-6, 1e-12]) {
    const filter = BloomFilter.create(items, rate)
    plans.push({ items, rate, bits: filter.size, probes: filter._nbHashes })
  }

// Bytes are hashed as text of the same bytes.
const bytes = new BloomFilter(1000, 3)
bytes.add(Buffer.from('item é'))
const text = new BloomFilter(1000, 3)
text.add('item é')
if (JSON.stringify(bytes.saveAsJSON()) !== JSON.stringify(text.saveAsJSON())) throw new Error('bytes differ from text')

const items = []
for (let i = 0; i < 400; i++) items.push(item(i))
fs.writeFileSync('bloom-filters.json', JSON.stringify({ items, filters, plans }, null, 1) + '\n')
