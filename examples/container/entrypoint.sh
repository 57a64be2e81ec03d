#!/bin/bash
# The start of a pod, with the arguments and variables that Spark on Kubernetes gives it: `driver`
# and `executor` as in Spark's own images. Other commands run as they are.
set -e

# Hadoop asks for the user's name, which a user id that the cluster has chosen does not have.
if ! getent passwd "$(id -u)" >/dev/null; then
    export NSS_WRAPPER_PASSWD=/tmp/passwd NSS_WRAPPER_GROUP=/etc/group LD_PRELOAD=libnss_wrapper.so
    echo "spark:x:$(id -u):$(id -g)::/tmp:/bin/false" >/tmp/passwd
fi

case "$1" in
driver)
    shift
    set -- "$SPARK_HOME/bin/spark-submit" \
        --conf "spark.driver.bindAddress=$SPARK_DRIVER_BIND_ADDRESS" --deploy-mode client "$@"
    ;;
executor)
    options=()
    for name in $(compgen -v SPARK_JAVA_OPT_ | sort -V); do
        options+=("${!name}")
    done
    set -- java "${options[@]}" "-Xms$SPARK_EXECUTOR_MEMORY" "-Xmx$SPARK_EXECUTOR_MEMORY" \
        -cp "${SPARK_CONF_DIR:-$SPARK_HOME/conf}:$SPARK_CLASSPATH:$SPARK_HOME/jars/*" \
        org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend \
        --driver-url "$SPARK_DRIVER_URL" --executor-id "$SPARK_EXECUTOR_ID" \
        --cores "$SPARK_EXECUTOR_CORES" --app-id "$SPARK_APPLICATION_ID" \
        --hostname "$SPARK_EXECUTOR_POD_IP" --resourceProfileId "$SPARK_RESOURCE_PROFILE_ID" \
        --podName "$SPARK_EXECUTOR_POD_NAME"
    ;;
esac
exec tini -s -- "$@"
