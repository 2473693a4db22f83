import { crc32, deflateRawSync } from 'node:zlib'

/** A file of a ZIP that is made, and what the ZIP says of it that is not so. */
export type ZippedFile = {
  name: string
  content: string | Buffer
  /** 0: stored. Default: 8, deflated. */
  method?: number
  /** General purpose bits. Default: 0x800, the name is UTF-8. */
  flags?: number
  /** Sizes and checksum stand behind the bytes, as programs write them that do not know them before. */
  hasDescriptor?: boolean
  /** Sizes and places stand in a field of ZIP64. */
  isZip64?: boolean
  /** False values that the ZIP states, in place of the true ones. */
  says?: Partial<Record<'size' | 'compressedSize' | 'crc32', number>>
  /** Place of another file whose bytes are those of this one too. */
  sharesWith?: number
}

const maxUint32 = 0xffffffff

/** Makes a ZIP. Source: APPNOTE 4.3. */
export function zipOf(files: readonly ZippedFile[]): Buffer {
  const parts: Buffer[] = []
  const directory: Buffer[] = []
  const places: { offset: number; packed: Buffer }[] = []
  let offset = 0
  const add = (bytes: Buffer) => {
    parts.push(bytes)
    offset += bytes.length
  }
  for (const file of files) {
    const { method = 8, hasDescriptor = false, isZip64 = false, says = {} } = file
    const flags = (file.flags ?? 0x800) | (hasDescriptor ? 8 : 0)
    const name = Buffer.from(file.name)
    const content = Buffer.from(file.content as string)
    const shared = file.sharesWith === undefined ? undefined : places[file.sharesWith]
    const packed = shared?.packed ?? (method === 0 ? content : deflateRawSync(content))
    const facts = { crc32: crc32(content), compressedSize: packed.length, size: content.length, ...says }
    const place = { offset: shared?.offset ?? offset, packed }
    places.push(place)

    const common = (sums: typeof facts) => {
      const fields = Buffer.alloc(26)
      fields.writeUInt16LE(isZip64 ? 45 : 20, 0)
      fields.writeUInt16LE(flags, 2)
      fields.writeUInt16LE(method, 4)
      fields.writeUInt32LE(sums.crc32, 10)
      fields.writeUInt32LE(isZip64 ? maxUint32 : sums.compressedSize, 14)
      fields.writeUInt32LE(isZip64 ? maxUint32 : sums.size, 18)
      fields.writeUInt16LE(name.length, 22)
      return fields
    }
    const zip64 = Buffer.alloc(isZip64 ? 28 : 0)
    if (isZip64) {
      zip64.writeUInt16LE(1, 0)
      zip64.writeUInt16LE(24, 2)
      zip64.writeBigUInt64LE(BigInt(facts.size), 4)
      zip64.writeBigUInt64LE(BigInt(facts.compressedSize), 12)
      zip64.writeBigUInt64LE(BigInt(place.offset), 20)
    }
    if (shared === undefined) {
      const none = { crc32: 0, compressedSize: 0, size: 0 }
      add(Buffer.concat([Buffer.from('PK\u0003\u0004'), common(hasDescriptor ? none : facts), name, packed]))
      if (hasDescriptor) {
        const descriptor = Buffer.from('PK\u0007\u0008............', 'latin1')
        descriptor.writeUInt32LE(facts.crc32, 4)
        descriptor.writeUInt32LE(facts.compressedSize, 8)
        descriptor.writeUInt32LE(facts.size, 12)
        add(descriptor)
      }
    }
    const madeBy = Buffer.from([20, 0])
    const rest = Buffer.alloc(14)
    rest.writeUInt32LE(isZip64 ? maxUint32 : place.offset, 10)
    const fields = common(facts)
    fields.writeUInt16LE(zip64.length, 24)
    directory.push(Buffer.concat([Buffer.from('PK\u0001\u0002'), madeBy, fields, rest, name, zip64]))
  }
  const entries = Buffer.concat(directory)
  const end = Buffer.alloc(22)
  end.write('PK\u0005\u0006', 'latin1')
  end.writeUInt16LE(files.length, 8)
  end.writeUInt16LE(files.length, 10)
  end.writeUInt32LE(entries.length, 12)
  end.writeUInt32LE(offset, 16)
  return Buffer.concat([...parts, entries, end])
}

/** Makes a CSV file of people, for a ZIP. */
export function csvFile(name: string, ...people: string[]): ZippedFile {
  return { name, content: `email\n${people.map((person) => `${person}@example.com\n`).join('')}` }
}
