// Writes a set of any format as text, one line an entry (E) or a record (R), as
// Kafka's own classes read it. The Go tests print their own reading in the same
// form and compare.
import java.nio.ByteBuffer;
import java.util.zip.CRC32;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.record.*;

final class Dump {
    static String set(MemoryRecords set) {
        StringBuilder out = new StringBuilder();
        for (RecordBatch b : set.batches()) {
            b.ensureValid();
            out.append("E ").append(b.magic()).append(' ').append(b.compressionType().name)
               .append(' ').append(b.lastOffset()).append(' ').append(b.timestampType().name)
               .append(' ').append(b.maxTimestamp());
            if (b.magic() == 2)
                out.append(' ').append(b.baseOffset()).append(' ').append(b.partitionLeaderEpoch())
                   .append(' ').append(b.producerId()).append(' ').append(b.producerEpoch())
                   .append(' ').append(b.baseSequence()).append(' ').append(b.lastSequence())
                   .append(' ').append(b.isTransactional()).append(' ').append(b.isControlBatch())
                   .append(' ').append(b.countOrNull());
            out.append('\n');
            for (org.apache.kafka.common.record.Record r : b) {
                out.append("R ").append(r.offset()).append(' ').append(r.timestamp()).append(' ').append(r.sequence())
                   .append(' ').append(bytes(r.hasKey() ? r.key() : null))
                   .append(' ').append(bytes(r.hasValue() ? r.value() : null));
                for (Header h : r.headers())
                    out.append(' ').append(h.key()).append('=')
                       .append(bytes(h.value() == null ? null : ByteBuffer.wrap(h.value())));
                out.append('\n');
            }
        }
        return out.toString();
    }

    static String bytes(ByteBuffer p) {
        if (p == null)
            return "null";
        byte[] b = new byte[p.remaining()];
        p.duplicate().get(b);
        if (b.length > 40) {
            CRC32 c = new CRC32();
            c.update(b);
            return "#" + b.length + ":" + Long.toHexString(c.getValue());
        }
        return "'" + hex(b) + "'";
    }

    static String hex(byte[] b) {
        StringBuilder s = new StringBuilder();
        for (byte x : b)
            s.append(String.format("%02x", x & 0xff));
        return s.toString();
    }
}
