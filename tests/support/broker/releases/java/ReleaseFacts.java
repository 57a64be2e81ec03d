import java.io.File;
import java.io.IOException;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.util.ArrayList;
import java.util.List;
import java.util.TreeMap;
import java.util.jar.JarFile;
import org.apache.kafka.common.config.ConfigDef;

/** Prints what a release of Kafka says of itself, a JSON object a line: metadata versions, features,
    configs with their validators, and the classes that a broker's settings can name. Classes differ between releases, hence the reflection. */
public class ReleaseFacts {
    static final List<String> PLUGINS = List.of(
        "org.apache.kafka.common.metrics.MetricsReporter",
        "org.apache.kafka.common.replica.ReplicaSelector",
        "org.apache.kafka.common.security.auth.AuthenticateCallbackHandler",
        "org.apache.kafka.common.security.auth.KafkaPrincipalBuilder",
        "org.apache.kafka.common.security.auth.Login",
        "org.apache.kafka.common.security.auth.SslEngineFactory",
        "org.apache.kafka.coordinator.group.api.assignor.PartitionAssignor",
        "org.apache.kafka.server.authorizer.Authorizer",
        "org.apache.kafka.server.log.remote.storage.RemoteLogMetadataManager",
        "org.apache.kafka.server.log.remote.storage.RemoteStorageManager",
        "org.apache.kafka.server.policy.AlterConfigPolicy",
        "org.apache.kafka.server.policy.CreateTopicPolicy",
        "org.apache.kafka.server.quota.ClientQuotaCallback",
        "kafka.metrics.KafkaMetricsReporter",
        "org.apache.kafka.server.metrics.KafkaMetricsReporter");

    public static void main(String[] arguments) throws Exception {
        metadataVersions(Class.forName("org.apache.kafka.server.common.MetadataVersion"));
        features(first("org.apache.kafka.server.common.Feature", "org.apache.kafka.server.common.Features"));
        Class<?> topic = Class.forName("org.apache.kafka.storage.internals.log.LogConfig");
        configs("topic", (ConfigDef) topic.getMethod("configDefCopy").invoke(null));
        Class<?> broker = Class.forName("org.apache.kafka.server.config.AbstractKafkaConfig");
        configs("broker", (ConfigDef) broker.getField("CONFIG_DEF").get(null));
        plugins();
    }

    static void plugins() throws IOException {
        List<Class<?>> kinds = new ArrayList<>();
        for (String name : PLUGINS) {
            Class<?> kind = loaded(name);
            if (kind != null) {
                kinds.add(kind);
            }
        }
        for (String path : System.getProperty("java.class.path").split(File.pathSeparator)) {
            if (!new File(path).getName().startsWith("kafka")) {
                continue;
            }
            try (JarFile jar = new JarFile(path)) {
                jar.stream().map(each -> each.getName()).filter(each -> each.endsWith(".class"))
                    .map(each -> loaded(each.substring(0, each.length() - 6).replace('/', '.')))
                    .filter(each -> each != null && !Modifier.isAbstract(each.getModifiers()))
                    .filter(each -> Modifier.isPublic(each.getModifiers()))
                    .filter(each -> kinds.stream().anyMatch(kind -> kind.isAssignableFrom(each)))
                    .forEach(each -> print("kind", "plugin", "name", each.getName()));
            }
        }
    }

    /** Return a class, null if this release does not have it, or it needs one that is not there. */
    static Class<?> loaded(String name) {
        try {
            return Class.forName(name, false, ReleaseFacts.class.getClassLoader());
        } catch (ClassNotFoundException | LinkageError missing) {
            return null;
        }
    }

    static void metadataVersions(Class<?> versions) throws Exception {
        for (Object each : versions.getEnumConstants()) {
            print("kind", "metadata", "level", call(each, "featureLevel"), "name", call(each, "version"));
        }
        for (String name : List.of("LATEST_PRODUCTION", "MINIMUM_VERSION", "MINIMUM_KRAFT_VERSION")) {
            try {
                Object bound = versions.getField(name).get(null);
                print("kind", "bound", "name", name, "level", call(bound, "featureLevel"));
            } catch (NoSuchFieldException missing) {
                // Another release has it.
            }
        }
    }

    static void features(Class<?> features) throws Exception {
        List<?> production = (List<?>) features.getField("PRODUCTION_FEATURES").get(null);
        for (Object each : production) {
            print("kind", "feature", "name", call(each, "featureName"),
                "least", call(each, "minimumProduction"), "most", call(each, "latestProduction"),
                "unstable", call(each, "latestTesting"));
            for (Object level : (Object[]) field(each, "featureVersions")) {
                print("kind", "level", "name", call(each, "featureName"), "level", call(level, "featureLevel"),
                    "metadata_version", call(call(level, "bootstrapMetadataVersion"), "featureLevel"));
            }
        }
    }

    static void configs(String of, ConfigDef definition) throws Exception {
        for (ConfigDef.ConfigKey key : new TreeMap<>(definition.configKeys()).values()) {
            Object validator = key.validator;
            Object lists = validator == null ? null : field(validator, "validString");
            print("kind", "config", "of", of, "name", key.name, "type", key.type.name().toLowerCase(),
                "required", key.hasDefault() ? null : Boolean.TRUE,
                "validator", validator == null ? null : validator.getClass().getSimpleName(),
                "text", validator == null ? null : validator.toString(),
                "least", validator == null ? null : field(validator, "min"),
                "most", validator == null ? null : field(validator, "max"),
                "values", validator == null ? null : field(lists == null ? validator : lists, "validStrings"));
        }
    }

    static Class<?> first(String... names) throws ClassNotFoundException {
        for (String name : names) {
            try {
                return Class.forName(name);
            } catch (ClassNotFoundException missing) {
                // Another release has it.
            }
        }
        throw new ClassNotFoundException(String.join(", ", names));
    }

    static Object call(Object target, String name) throws Exception {
        Method method = target.getClass().getMethod(name);
        method.setAccessible(true);
        return method.invoke(target);
    }

    /** Return a field of an object, null if its class has none with the name. */
    static Object field(Object target, String name) throws IllegalAccessException {
        for (Class<?> each = target.getClass(); each != null; each = each.getSuperclass()) {
            try {
                Field found = each.getDeclaredField(name);
                found.setAccessible(true);
                return found.get(target);
            } catch (NoSuchFieldException missing) {
                // A class above may have it.
            }
        }
        return null;
    }

    static void print(Object... pairs) {
        StringBuilder line = new StringBuilder("{");
        for (int index = 0; index < pairs.length; index += 2) {
            line.append(index == 0 ? "" : ", ").append(json(pairs[index])).append(": ").append(json(pairs[index + 1]));
        }
        System.out.println(line.append("}"));
    }

    static String json(Object value) {
        if (value == null || value instanceof Number || value instanceof Boolean) {
            return String.valueOf(value);
        }
        if (value instanceof Iterable) {
            StringBuilder items = new StringBuilder("[");
            for (Object each : (Iterable<?>) value) {
                items.append(items.length() == 1 ? "" : ", ").append(json(each));
            }
            return items.append("]").toString();
        }
        return '"' + value.toString().replace("\\", "\\\\").replace("\"", "\\\"") + '"';
    }
}
