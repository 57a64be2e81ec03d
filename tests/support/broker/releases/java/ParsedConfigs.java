import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.List;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.config.ConfigException;

/** Reads lines of a kind of config (topic or broker), a name and a value, with tabs between, and
    prints whether the release's parser takes the value. */
public class ParsedConfigs {
    public static void main(String[] arguments) throws Exception {
        Class<?> topic = Class.forName("org.apache.kafka.storage.internals.log.LogConfig");
        ConfigDef ofTopics = (ConfigDef) topic.getMethod("configDefCopy").invoke(null);
        Class<?> broker = Class.forName("org.apache.kafka.server.config.AbstractKafkaConfig");
        ConfigDef ofBrokers = (ConfigDef) broker.getField("CONFIG_DEF").get(null);
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] parts = line.split("\t", 3);
            ConfigDef.ConfigKey key = (parts[0].equals("topic") ? ofTopics : ofBrokers).configKeys().get(parts[1]);
            try {
                Object value = ConfigDef.parseType(key.name, parts[2], key.type);
                if (key.validator != null) {
                    key.validator.ensureValid(key.name, value);
                }
                System.out.println("taken");
            } catch (ConfigException refused) {
                System.out.println("refused");
            }
        }
    }
}
